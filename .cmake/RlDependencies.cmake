# The libraries that the rl libraries are linked with, apart from the runtime's. Read by this tree and, installed next to StarlingConfig.cmake, by projects that ask
# for COMPONENTS rl. STARLING_TORCH names the folder `torch` of LibTorch's wheel, or of the copy that is installed; empty: none is needed.
find_dependency(nlohmann_json)
pkg_check_modules(STARLING_YAMLCPP REQUIRED IMPORTED_TARGET yaml-cpp)
pkg_check_modules(STARLING_PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(STARLING_UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(STARLING_CURL REQUIRED IMPORTED_TARGET libcurl>=7.85)

# torch_cpu and c10 only, so that no CUDA library is needed. A separate name: a project may find another LibTorch by find_package(Torch).
if(STARLING_TORCH AND NOT TARGET Starling::Torch)
  add_library(Starling::Torch INTERFACE IMPORTED)
  # After the system's folders, since the wheel brings another fmt, which does not fit Debian's spdlog.
  target_compile_options(Starling::Torch INTERFACE "SHELL:-idirafter ${STARLING_TORCH}/include" "SHELL:-idirafter ${STARLING_TORCH}/include/torch/csrc/api/include")
  # ATen's headers otherwise include all operators (20 s a file instead of 10).
  target_compile_definitions(Starling::Torch INTERFACE AT_PER_OPERATOR_HEADERS)
  target_link_libraries(Starling::Torch INTERFACE ${STARLING_TORCH}/lib/libtorch_cpu.so ${STARLING_TORCH}/lib/libc10.so)
  # libtorch_cpu.so needs cudart and cupti and finds them by its own RPATH; only the linker has to be told.
  target_link_options(Starling::Torch INTERFACE -Wl,-rpath-link,${STARLING_TORCH}/../nvidia/cu13/lib)
endif()
