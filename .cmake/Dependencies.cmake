# One imported target per library that we did not write. docs/dependencies.md says why each is here.
set(CMAKE_FIND_PACKAGE_NAME Starling)  # what find_dependency() takes its REQUIRED from
set(Starling_FIND_REQUIRED TRUE)
include(RuntimeDependencies)
unset(CMAKE_FIND_PACKAGE_NAME)
add_library(CapnProto ALIAS PkgConfig::STARLING_CAPNP)
add_library(sodium ALIAS PkgConfig::STARLING_SODIUM)
add_library(xxHash ALIAS PkgConfig::STARLING_XXHASH)

find_program(CAPNP_EXECUTABLE capnp REQUIRED)
find_program(CAPNPC_CXX_EXECUTABLE capnpc-c++ REQUIRED)

find_package(nlohmann_json REQUIRED)  # defines nlohmann_json

find_package(CLI11 REQUIRED)

pkg_check_modules(SQLITE_PKG REQUIRED IMPORTED_TARGET sqlite3)  # the head's journal
add_library(sqlite ALIAS PkgConfig::SQLITE_PKG)

pkg_check_modules(PROMETHEUS_PKG REQUIRED IMPORTED_TARGET prometheus-cpp-core)  # the metrics' text; its HTTP server is not used
add_library(prometheus ALIAS PkgConfig::PROMETHEUS_PKG)

# The programs' allocator. Sanitizers bring their own.
add_library(allocator INTERFACE)
if(NOT STARLING_SANITIZE)
  pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
  target_link_libraries(allocator INTERFACE -Wl,--no-as-needed PkgConfig::JEMALLOC -Wl,--as-needed)
endif()

if(STARLING_RL)
  pkg_check_modules(YAMLCPP REQUIRED IMPORTED_TARGET yaml-cpp)
  add_library(yaml-cpp ALIAS PkgConfig::YAMLCPP)
  pkg_check_modules(PCRE2_PKG REQUIRED IMPORTED_TARGET libpcre2-8)
  add_library(PCRE2 ALIAS PkgConfig::PCRE2_PKG)
  pkg_check_modules(UTF8PROC_PKG REQUIRED IMPORTED_TARGET libutf8proc)
  add_library(utf8proc ALIAS PkgConfig::UTF8PROC_PKG)

  pkg_check_modules(CURL_PKG REQUIRED IMPORTED_TARGET libcurl>=7.85)
  add_library(curl ALIAS PkgConfig::CURL_PKG)

  # LibTorch from the wheel in the user's cache: torch_cpu and c10 only, so that no CUDA library is needed.
  set(starling_cache $ENV{XDG_CACHE_HOME})
  if(NOT starling_cache)
    set(starling_cache $ENV{HOME}/.cache)
  endif()
  set(starling_cache ${starling_cache}/starling)
  if(DEFINED ENV{STARLING_CACHE})
    set(starling_cache $ENV{STARLING_CACHE})
  endif()
  set(STARLING_WHEELS ${starling_cache}/unpacked CACHE PATH "where .ci/fetch_wheels.sh unpacked the wheels")
  file(GLOB torch_roots ${STARLING_WHEELS}/torch-2.11.0-*/torch)
  if(NOT torch_roots)
    message(FATAL_ERROR "LibTorch is not in ${STARLING_WHEELS}: run .ci/fetch_wheels.sh cpu (or make deps), or configure with -DSTARLING_RL=OFF")
  endif()
  list(GET torch_roots 0 torch_root)
  add_library(torch INTERFACE IMPORTED)
  # After the system's folders, since the wheel brings an fmt of its own that does not fit Debian's spdlog.
  target_compile_options(torch INTERFACE "SHELL:-idirafter ${torch_root}/include" "SHELL:-idirafter ${torch_root}/include/torch/csrc/api/include")
  # ATen's headers otherwise include all operators (20 s a file instead of 10).
  target_compile_definitions(torch INTERFACE AT_PER_OPERATOR_HEADERS)
  target_link_libraries(torch INTERFACE ${torch_root}/lib/libtorch_cpu.so ${torch_root}/lib/libc10.so)
  # libtorch_cpu.so needs cudart and cupti and finds them by its own RPATH; only the linker has to be told.
  target_link_options(torch INTERFACE -Wl,-rpath-link,${torch_root}/../nvidia/cu13/lib)
endif()
