# Precompiled headers of tests and fuzz targets: what other projects' headers cost, paid once a build instead of once a file. Libraries are compiled in
# batches, which gain little from them, and programs have a file each (docs/adr/0040). Ours are in none, so that a change to one of them rebuilds
# what includes it and no more. A target takes the smallest set that has what it includes:
#   base        the standard library, Asio, nlohmann-json, fmt: fuzz targets
#   base_test   the same and GoogleTest
#   torch_test  that and ATen's common headers
# A file still includes what it uses: the sanitizers' builds have no precompiled headers (docs/testing.md).
option(STARLING_PRECOMPILED_HEADERS "Precompile the headers of other projects" ON)

set(STARLING_BASE_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <condition_variable> <cstdint> <cstdio> <cstdlib> <cstring> <deque>
  <filesystem> <fstream> <functional> <iterator> <limits> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string>
  <string_view> <thread> <tuple> <type_traits> <unordered_map> <utility> <variant> <vector> <fmt/core.h> <nlohmann/json.hpp>
  <boost/asio.hpp> <boost/asio/experimental/awaitable_operators.hpp>)
set(STARLING_TORCH_HEADERS <ATen/TensorOperators.h> <ATen/core/Tensor.h> <ATen/core/grad_mode.h> <ATen/Parallel.h> <ATen/ops/arange.h> <ATen/ops/cat.h>
  <ATen/ops/empty.h> <ATen/ops/from_blob.h> <ATen/ops/tensor.h> <ATen/ops/where.h> <ATen/ops/zeros.h> <ATen/ops/zeros_like.h> <c10/core/GradMode.h>)

# Creates precompiled_<name>, whose headers other targets take.
function(starling_precompiled_headers name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPS" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/precompiled/${name}.cpp)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "// The headers are the point.\n")
  endif()
  add_library(precompiled_${name} OBJECT ${source})
  target_include_directories(precompiled_${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  target_link_libraries(precompiled_${name} PRIVATE ${ARG_DEPS})
  target_precompile_headers(precompiled_${name} PRIVATE ${ARG_HEADERS})
  if(name MATCHES "_test$")
    target_compile_options(precompiled_${name} PRIVATE -O1)  # as the tests
  endif()
endfunction()

# Whether what `target` links reaches LibTorch.
function(starling_reaches_torch target out)
  set(${out} FALSE PARENT_SCOPE)
  set(seen)
  set(queue ${target})
  while(queue)
    list(POP_FRONT queue next)
    if(next STREQUAL "Starling::Torch")
      set(${out} TRUE PARENT_SCOPE)
      return()
    endif()
    if(next IN_LIST seen OR NOT TARGET ${next})
      continue()
    endif()
    list(APPEND seen ${next})
    foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(libraries ${next} ${property})
      if(libraries)
        list(APPEND queue ${libraries})
      endif()
    endforeach()
  endwhile()
endfunction()

# Gives every test program and fuzz target its set.
function(starling_precompile)
  if(NOT STARLING_PRECOMPILED_HEADERS)
    return()
  endif()
  get_property(targets DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTY BUILDSYSTEM_TARGETS)
  starling_precompiled_headers(base HEADERS ${STARLING_BASE_HEADERS} DEPS Starling::Boost spdlog::spdlog nlohmann_json::nlohmann_json)
  starling_precompiled_headers(base_test HEADERS ${STARLING_BASE_HEADERS} <gtest/gtest.h>
    DEPS Starling::Boost spdlog::spdlog nlohmann_json::nlohmann_json GTest::gtest)
  if(STARLING_LIBTORCH)
    starling_precompiled_headers(torch_test HEADERS ${STARLING_BASE_HEADERS} ${STARLING_TORCH_HEADERS} <gtest/gtest.h>
      DEPS Starling::Boost spdlog::spdlog nlohmann_json::nlohmann_json Starling::Torch GTest::gtest)
  endif()
  foreach(target ${targets})
    if(target MATCHES "_fuzz$")
      target_precompile_headers(${target} REUSE_FROM precompiled_base)
    endif()
    if(NOT target MATCHES "^test_" OR target STREQUAL "test_programs")
      continue()
    endif()
    set(set base_test)
    starling_reaches_torch(${target} torch)
    if(torch)
      set(set torch_test)
    endif()
    target_precompile_headers(${target} REUSE_FROM precompiled_${set})
  endforeach()
endfunction()
