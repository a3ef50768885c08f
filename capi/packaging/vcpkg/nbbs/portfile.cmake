# nbbs from the source tree that this port lies in: vcpkg install nbbs --overlay-ports=capi/packaging/vcpkg
# Takes Rust 1.88, and no network.

# cargo builds with optimisation, whatever the configuration.
set(VCPKG_BUILD_TYPE release)

file(REMOVE_RECURSE "${CURRENT_BUILDTREES_DIR}/src")
vcpkg_execute_required_process(
    COMMAND bash "${CMAKE_CURRENT_LIST_DIR}/../../source.sh" "${CURRENT_BUILDTREES_DIR}/src"
    WORKING_DIRECTORY "${CMAKE_CURRENT_LIST_DIR}"
    LOGNAME source)
set(SOURCE_PATH "${CURRENT_BUILDTREES_DIR}/src/nbbs-${VERSION}")

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}/capi")
vcpkg_cmake_install()

# Of the two that are built, the one that the triplet is for.
if(VCPKG_LIBRARY_LINKAGE STREQUAL "static")
    file(GLOB others "${CURRENT_PACKAGES_DIR}/lib/libnbbs.so*")
else()
    file(GLOB others "${CURRENT_PACKAGES_DIR}/lib/libnbbs.a")
endif()
file(REMOVE ${others})

# What find_package looks for finds the prefix from where it lies.
file(RENAME "${CURRENT_PACKAGES_DIR}/share/cmake/nbbs" "${CURRENT_PACKAGES_DIR}/share/nbbs")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/cmake")
foreach(file nbbsConfig.cmake nbbsConfigVersion.cmake)
    vcpkg_replace_string("${CURRENT_PACKAGES_DIR}/share/nbbs/${file}" "/../../.." "/../..")
endforeach()
vcpkg_fixup_pkgconfig()

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE-MIT" "${SOURCE_PATH}/LICENSE-APACHE")
