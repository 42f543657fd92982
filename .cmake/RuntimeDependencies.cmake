# The libraries that the runtime is linked with. Read by this tree and, installed next to StarlingConfig.cmake, by projects that
# use the package, so that both find the same.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(spdlog)

# Headers, of which the runtime compiles Asio's function bodies once (runtime/core/asio.cpp). Debian 12 has 1.81 next to its default 1.74; Ubuntu 24.04's default is 1.83.
find_dependency(Boost 1.81)
if(NOT TARGET Starling::Boost)
  add_library(Starling::Boost INTERFACE IMPORTED)
  target_include_directories(Starling::Boost SYSTEM INTERFACE ${Boost_INCLUDE_DIRS})
  target_compile_definitions(Starling::Boost INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_VISIBILITY BOOST_ASIO_SEPARATE_COMPILATION)
  target_link_libraries(Starling::Boost INTERFACE Threads::Threads)
endif()

find_dependency(PkgConfig)
pkg_check_modules(STARLING_CAPNP REQUIRED IMPORTED_TARGET capnp)
pkg_check_modules(STARLING_SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(STARLING_CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(STARLING_XXHASH REQUIRED IMPORTED_TARGET libxxhash)
