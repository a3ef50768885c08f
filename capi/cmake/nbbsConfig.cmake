# find_package(nbbs): nbbs as `cargo cinstall` installed it.
#
#   nbbs::nbbs     nbbs::shared if that was installed, otherwise nbbs::static
#   nbbs::shared   nbbs::static
if(TARGET nbbs::nbbs)
    return()
endif()
# What nbbs.h is told of the library; unless CMake has installed it, nothing.
set(_nbbs_definitions "@definitions@")
if(NOT _nbbs_definitions MATCHES "^NBBS_")
    set(_nbbs_definitions)
endif()
get_filename_component(_nbbs_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# Libraries lie where the distribution has them: lib, lib64 or lib/<triplet>.
function(_nbbs_import kind)
    string(TOUPPER ${kind} KIND)
    find_library(_nbbs_${kind}
        NAMES "${CMAKE_${KIND}_LIBRARY_PREFIX}nbbs${CMAKE_${KIND}_LIBRARY_SUFFIX}" NO_DEFAULT_PATH
        PATHS "${_nbbs_prefix}" PATH_SUFFIXES "lib/${CMAKE_LIBRARY_ARCHITECTURE}" lib lib64)
    if(_nbbs_${kind})
        add_library(nbbs::${kind} ${KIND} IMPORTED)
        set_target_properties(nbbs::${kind} PROPERTIES IMPORTED_LOCATION "${_nbbs_${kind}}"
            INTERFACE_INCLUDE_DIRECTORIES "${_nbbs_prefix}/include"
            INTERFACE_COMPILE_DEFINITIONS "${_nbbs_definitions}")
    endif()
    unset(_nbbs_${kind} CACHE)
endfunction()

_nbbs_import(shared)
_nbbs_import(static)
if(TARGET nbbs::static)
    include("${CMAKE_CURRENT_LIST_DIR}/nbbsSystem.cmake")
    nbbs_system_libraries(nbbs::static)
endif()

add_library(nbbs::nbbs INTERFACE IMPORTED)
if(TARGET nbbs::shared)
    set_property(TARGET nbbs::nbbs PROPERTY INTERFACE_LINK_LIBRARIES nbbs::shared)
elseif(TARGET nbbs::static)
    set_property(TARGET nbbs::nbbs PROPERTY INTERFACE_LINK_LIBRARIES nbbs::static)
else()
    set(nbbs_FOUND FALSE)
    set(nbbs_NOT_FOUND_MESSAGE "no library nbbs in lib, lib64 or lib/<triplet> of ${_nbbs_prefix}")
endif()
