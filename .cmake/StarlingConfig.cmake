# find_package(Starling): the targets Starling::runtime and Starling::placement. A driver finds the program `starling`, which it
# starts a cluster with, in PATH or by the environment variable STARLING_PROGRAM; Starling_PROGRAM is the one installed here.
include(${CMAKE_CURRENT_LIST_DIR}/RuntimeDependencies.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/StarlingTargets.cmake)
get_filename_component(Starling_PROGRAM ${CMAKE_CURRENT_LIST_DIR}/../../../bin/starling ABSOLUTE)
