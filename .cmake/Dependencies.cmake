# One imported target per library that we did not write. docs/dependencies.md says why each is here.
set(CMAKE_FIND_PACKAGE_NAME Starling)  # what find_dependency() takes its REQUIRED from
set(Starling_FIND_REQUIRED TRUE)
include(RuntimeDependencies)
add_library(CapnProto ALIAS PkgConfig::STARLING_CAPNP)
add_library(sodium ALIAS PkgConfig::STARLING_SODIUM)
add_library(crypto ALIAS PkgConfig::STARLING_CRYPTO)
add_library(xxHash ALIAS PkgConfig::STARLING_XXHASH)

find_program(CAPNP_EXECUTABLE capnp REQUIRED)
find_program(CAPNPC_CXX_EXECUTABLE capnpc-c++ REQUIRED)

find_package(nlohmann_json REQUIRED)  # defines nlohmann_json

find_package(CLI11 REQUIRED)

pkg_check_modules(SQLITE_PKG REQUIRED IMPORTED_TARGET sqlite3)  # the head's journal
add_library(sqlite ALIAS PkgConfig::SQLITE_PKG)

pkg_check_modules(PROMETHEUS_PKG REQUIRED IMPORTED_TARGET prometheus-cpp-core)  # the metrics' text; its HTTP server is not used
add_library(prometheus ALIAS PkgConfig::PROMETHEUS_PKG)

pkg_check_modules(SSL_PKG REQUIRED IMPORTED_TARGET libssl)  # HTTPS for the metrics
add_library(ssl ALIAS PkgConfig::SSL_PKG)

# The programs' allocator. Sanitizers bring their own.
add_library(allocator INTERFACE)
if(NOT STARLING_SANITIZE)
  pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
  target_link_libraries(allocator INTERFACE -Wl,--no-as-needed PkgConfig::JEMALLOC -Wl,--as-needed)
endif()

if(STARLING_RL)
  # LibTorch and Arrow come from wheels in the user's cache.
  set(starling_cache $ENV{XDG_CACHE_HOME})
  if(NOT starling_cache)
    set(starling_cache $ENV{HOME}/.cache)
  endif()
  set(starling_cache ${starling_cache}/starling)
  if(DEFINED ENV{STARLING_CACHE})
    set(starling_cache $ENV{STARLING_CACHE})
  endif()
  set(STARLING_WHEELS ${starling_cache}/unpacked CACHE PATH "where .ci/fetch_wheels.sh unpacked the wheels")
  if(STARLING_LIBTORCH)
    file(GLOB torch_roots ${STARLING_WHEELS}/torch-2.11.0-*/torch)
    if(NOT torch_roots)
      message(FATAL_ERROR "LibTorch is not in ${STARLING_WHEELS}: run .ci/fetch_wheels.sh cpu (or make deps), or configure with -DSTARLING_RL=OFF")
    endif()
    list(GET torch_roots 0 STARLING_TORCH)
  endif()
  include(RlDependencies)
  add_library(yaml-cpp ALIAS PkgConfig::STARLING_YAMLCPP)
  add_library(PCRE2 ALIAS PkgConfig::STARLING_PCRE2)
  add_library(utf8proc ALIAS PkgConfig::STARLING_UTF8PROC)
  add_library(curl ALIAS PkgConfig::STARLING_CURL)
endif()
unset(CMAKE_FIND_PACKAGE_NAME)
