# The version that nbbs.h names. It will do for who asks for the same major and minor version, and no later one.
get_filename_component(_nbbs_include "${CMAKE_CURRENT_LIST_DIR}/../../../include" ABSOLUTE)
file(STRINGS "${_nbbs_include}/nbbs.h" PACKAGE_VERSION REGEX "define NBBS_VERSION")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" PACKAGE_VERSION "${PACKAGE_VERSION}")

string(REGEX MATCH "^[0-9]+\\.[0-9]+" _nbbs_has "${PACKAGE_VERSION}")
if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
endif()
if(_nbbs_has VERSION_EQUAL "${PACKAGE_FIND_VERSION_MAJOR}.${PACKAGE_FIND_VERSION_MINOR}" AND
        NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
