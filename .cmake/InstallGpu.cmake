# Run while installing: what the group "gpu" of `wheels` (.ci/wheels.txt) takes out of its wheels goes from `root`, where they are unpacked, to lib/starling in
# the same layout, so that the libraries find each other as they do there, and LibTorch's own finds all of them beside itself.
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
