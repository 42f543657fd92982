# While installing, takes the files of the group "gpu" of `wheels` (.ci/wheels.txt) from `root`, where their wheels are unpacked, to lib/starling. The layout
# stays the same, so that the libraries find each other as in the wheels. LibTorch's own library finds all of them next to itself.
cmake_minimum_required(VERSION 3.25)
file(STRINGS ${wheels} lines REGEX "^[^#]+ gpu ")
foreach(line ${lines})
  string(REPLACE " " ";" fields "${line}")
  list(SUBLIST fields 4 -1 paths)  # after the wheel, its group, hash and folder
  foreach(path ${paths})
    if(NOT EXISTS ${root}/${path})
      list(GET fields 0 wheel)
      message(FATAL_ERROR "${root}/${path} of ${wheel} is not there to be installed: .ci/fetch_wheels.sh cpu gpu")
    endif()
    get_filename_component(folder ${path} DIRECTORY)
    file(INSTALL ${root}/${path} DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/starling/${folder} USE_SOURCE_PERMISSIONS)
  endforeach()
endforeach()
