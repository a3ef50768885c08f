# cmake -DPORT_DIR=... -DPREFIX=... -DLINKAGE=static|dynamic -DVERSION=... -P stand-ins.cmake: runs a port where there is no vcpkg.
# Of vcpkg's functions, those that the port calls, as far as it relies on them.
get_filename_component(PORT "${PORT_DIR}" NAME)
set(CURRENT_BUILDTREES_DIR "${PREFIX}/buildtrees")
set(CURRENT_PACKAGES_DIR "${PREFIX}/package")
set(VCPKG_LIBRARY_LINKAGE "${LINKAGE}")

function(vcpkg_execute_required_process)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "WORKING_DIRECTORY;LOGNAME" "COMMAND")
    execute_process(COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${arg_WORKING_DIRECTORY}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_configure)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "")
    execute_process(COMMAND "${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${CURRENT_BUILDTREES_DIR}/rel"
        "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" -DCMAKE_INSTALL_LIBDIR=lib COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_install)
    execute_process(COMMAND "${CMAKE_COMMAND}" --build "${CURRENT_BUILDTREES_DIR}/rel" --target install
        COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_replace_string file old new)
    file(READ "${file}" before)
    string(REPLACE "${old}" "${new}" after "${before}")
    if(after STREQUAL before)
        message(FATAL_ERROR "${file} does not have ${old}")
    endif()
    file(WRITE "${file}" "${after}")
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
    file(INSTALL ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
endfunction()

include("${PORT_DIR}/portfile.cmake")
