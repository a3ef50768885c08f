# What the static library needs of the system: `cargo rustc -- --print native-static-libs`.
function(nbbs_system_libraries target)
    set(THREADS_PREFER_PTHREAD_FLAG ON)
    find_package(Threads REQUIRED)
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES Threads::Threads ${CMAKE_DL_LIBS} m)
endfunction()
