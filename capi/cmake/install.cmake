# What `cmake --install` installs, and where: the same as `cargo cinstall`.
include(GNUInstallDirs)

# installed_as(KIND NAME): installs the library nbbs::KIND under a name, and builds it if that has not been done: who installs
# may have no Rust.
function(installed_as kind name)
    get_target_property(library nbbs_${kind} IMPORTED_LOCATION)
    install(CODE "if(NOT EXISTS \"${library}\")
            execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${CMAKE_CURRENT_BINARY_DIR}\" COMMAND_ERROR_IS_FATAL ANY)
        endif()")
    install(FILES "${library}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" RENAME "${name}")
endfunction()

installed_as(static "${CMAKE_STATIC_LIBRARY_PREFIX}nbbs${CMAKE_STATIC_LIBRARY_SUFFIX}")
if(soname)
    installed_as(shared "libnbbs.so.${PROJECT_VERSION}")
    install(CODE "
        set(lib \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")
        file(CREATE_LINK \"libnbbs.so.${PROJECT_VERSION}\" \"\${lib}/${soname}\" SYMBOLIC)
        file(CREATE_LINK \"${soname}\" \"\${lib}/libnbbs.so\" SYMBOLIC)")
else()
    installed_as(shared "${CMAKE_SHARED_LIBRARY_PREFIX}nbbs${CMAKE_SHARED_LIBRARY_SUFFIX}")
endif()

install(FILES include/nbbs.h include/nbbs.hpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY include/nbbs DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
# cargo-c installs it as it is, and does not know what the library has.
configure_file(cmake/nbbsConfig.cmake nbbsConfig.cmake @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/nbbsConfig.cmake" cmake/nbbsConfigVersion.cmake cmake/nbbsSystem.cmake
    DESTINATION "${CMAKE_INSTALL_DATADIR}/cmake/nbbs")
# It finds the prefix from where it lies, so that the tree may be moved.
file(RELATIVE_PATH NBBS_PC_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
set(NBBS_PC_DEFINITIONS)
foreach(definition ${definitions})
    string(APPEND NBBS_PC_DEFINITIONS " -D${definition}")
endforeach()
configure_file(cmake/nbbs.pc.in nbbs.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/nbbs.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
