# Compiler settings and the functions that turn folders into targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
# -g1 keeps line numbers for backtraces at a tenth of the size of -g2.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
if(STARLING_SANITIZE)  # compiles in three quarters of the time
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
endif()

# -fPIC for programs too: a precompiled header serves only what is compiled with the same flags.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fPIC;-Wall;-Wextra;-Werror=shadow;-Wno-unused-parameter;-Winvalid-pch;-fno-omit-frame-pointer>")
option(STARLING_WARNINGS_ARE_ERRORS "No warning passes, but for those that g++'s optimizer guesses" OFF)
if(STARLING_WARNINGS_ARE_ERRORS)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Werror;-Wno-error=array-bounds;-Wno-error=maybe-uninitialized>")
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-error=restrict;-Wno-error=stringop-overflow;-Wno-error=stringop-overread>")
endif()
# g++ 12 takes the frames of Asio's coroutines, whose memory comes from Asio's own pool, for memory of another operator new.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-mismatched-new-delete>")
# clang 14 can't put what `function` checks before the parts of a coroutine.
set(STARLING_UNDEFINED -fno-sanitize-recover=undefined $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
if(STARLING_SANITIZE STREQUAL "address")
  # Clang says by a feature what g++ says by a macro.
  add_compile_options(-fsanitize=address,undefined ${STARLING_UNDEFINED} $<$<CXX_COMPILER_ID:Clang>:-D__SANITIZE_ADDRESS__=1>)
  add_link_options(-fsanitize=address,undefined)
elseif(STARLING_SANITIZE STREQUAL "thread")
  # g++ warns about every fence, of which Asio's headers have many, and takes the sanitizer's own code for unset variables.
  add_compile_options(-fsanitize=thread $<$<CXX_COMPILER_ID:Clang>:-D__SANITIZE_THREAD__=1> $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=thread)
elseif(STARLING_SANITIZE STREQUAL "fuzzer")
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined ${STARLING_UNDEFINED})
  add_link_options(-fsanitize=address,undefined)
endif()

find_program(STARLING_CCACHE ccache)
if(STARLING_CCACHE)
  # base_dir makes the cache serve several checkouts and build folders.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=time_macros,pch_defines ${STARLING_CCACHE})
endif()
find_program(STARLING_MOLD mold)
find_program(STARLING_LLD ld.lld)
if(STARLING_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(STARLING_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# Several files of a library or a test program are compiled as one, which halves a build's work: templates and headers are shared. Hence the names in
# unnamed namespaces differ within it. OFF compiles each file by itself, which proves that it includes what it uses.
option(STARLING_UNITY "Compile the files of a library or a test program in batches" ON)

# starling_batches(target files): N source files of it at a time.
function(starling_batches target files)
  if(NOT STARLING_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
  # A class of a source file may have members of types from its unnamed namespace; g++ takes a file in a batch for a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

enable_testing()

# starling_library(name [APART] FOLDERS a b [SCHEMAS dir] DEPS x y): a static library of the .cpp files right in these folders.
# A file `main.cpp` or `*_main.cpp` is a program's and stays out; the folders' files of other languages are embedded. APART: its files differ in what machine they compile for, so never in batches.
function(starling_library name)
  cmake_parse_arguments(ARG "APART" "" "FOLDERS;SCHEMAS;DEPS" ${ARGN})
  set(sources)
  foreach(folder ${ARG_FOLDERS})
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
    list(APPEND sources ${found})
  endforeach()
  list(FILTER sources EXCLUDE REGEX "main\\.cpp$")
  foreach(folder ${ARG_FOLDERS})
    starling_embedded(sources ${folder})
  endforeach()
  foreach(schema_folder ${ARG_SCHEMAS})
    file(GLOB schemas CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${schema_folder}/*.capnp)
    foreach(schema ${schemas})
      file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR} ${schema})
      set(output ${CMAKE_BINARY_DIR}/generated/${relative})
      add_custom_command(OUTPUT ${output}.c++ ${output}.h DEPENDS ${schema}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated
        COMMAND ${CAPNP_EXECUTABLE} compile -o${CAPNPC_CXX_EXECUTABLE}:${CMAKE_BINARY_DIR}/generated
                --src-prefix=${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR} ${schema}
        WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} VERBATIM)
      list(APPEND sources ${output}.c++ ${output}.h)
    endforeach()
  endforeach()
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  add_library(Starling::${name} ALIAS ${name})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/generated>
    $<INSTALL_INTERFACE:include/starling>)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  if(NOT ARG_APART)
    starling_batches(${name} 12)
  endif()
endfunction()

# What `make test` needs and `make demo` does not: test programs, fuzz targets, every program and example. Not the benchmarks.
add_custom_target(test_programs)

# Every folder under tests/ that holds *_test.cpp becomes one program, tests/rl/data -> test_rl_data, linked with what
# tests/<layer> may use. Tests find the built programs through STARLING_BIN and the fixtures through STARLING_FIXTURES.
function(starling_tests)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  file(GLOB_RECURSE test_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.cpp)
  set(folders)
  foreach(file ${test_files})
    get_filename_component(folder ${file} DIRECTORY)
    list(APPEND folders ${folder})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR}/tests ${folder})
    string(REPLACE "/" "_" flat ${relative})
    string(REGEX MATCH "^[a-z]+" layer ${relative})
    if(layer STREQUAL "rl" AND NOT STARLING_LIBTORCH AND NOT TARGET ${flat})
      continue()
    endif()
    if(layer STREQUAL "sim" AND STARLING_SANITIZE STREQUAL "thread")
      continue()  # one thread, whose stacks that sanitizer cannot follow
    endif()
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
    if(EXISTS ${folder}/uses.txt)  # another folder of tests, whose harness this one compiles too
      file(STRINGS ${folder}/uses.txt used)
      file(GLOB harness CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${used}/*.cpp)
      list(FILTER harness EXCLUDE REGEX "_test\\.cpp$")
      list(APPEND sources ${harness})
    endif()
    add_executable(test_${flat} ${sources})
    # tests/rl/data links rl_data when there is such a library, else its layer's.
    if(TARGET ${flat})
      target_link_libraries(test_${flat} PRIVATE ${flat})
    elseif(layer STREQUAL "runtime")
      target_link_libraries(test_${flat} PRIVATE runtime_node)
    elseif(TARGET ${layer})
      target_link_libraries(test_${flat} PRIVATE ${layer})
    elseif(layer STREQUAL "sim")
      target_link_libraries(test_${flat} PRIVATE placement runtime_head runtime_node)  # whole clusters, with the scheduler that they have
    endif()
    target_link_libraries(test_${flat} PRIVATE GTest::gtest_main GTest::gtest)
    target_compile_definitions(test_${flat} PRIVATE STARLING_SOURCE_DIR="${CMAKE_SOURCE_DIR}" STARLING_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
    set_target_properties(test_${flat} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    starling_batches(test_${flat} 16)
    target_compile_options(test_${flat} PRIVATE -O1)  # compiles in three quarters of the time; what is tested keeps -O2
    add_dependencies(test_programs test_${flat})
    set(labels ${layer})
    if(EXISTS ${folder}/labels.txt)  # further ctest labels, one a line
      file(STRINGS ${folder}/labels.txt more)
      list(APPEND labels ${more})
    endif()
    # OpenMP's threads sleep while they wait, as in workers: tests run side by side, on fewer cores than they have threads.
    gtest_discover_tests(test_${flat} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX ${relative}/
      PROPERTIES TIMEOUT 300 ENVIRONMENT OMP_WAIT_POLICY=PASSIVE)
    # By a separate file: discovery loses all but the first of several labels. Suites whose names end in Timing hold bounds in seconds.
    set(time)
    if("slow" IN_LIST labels)
      set(time "TIMEOUT 1800")
    endif()
    file(WRITE ${CMAKE_BINARY_DIR}/test_${flat}_labels.cmake
      "if(test_${flat}_TESTS)\n  set_tests_properties(\${test_${flat}_TESTS} PROPERTIES LABELS \"${labels}\" ${time})\nendif()\n"
      "set(timing \${test_${flat}_TESTS})\nlist(FILTER timing INCLUDE REGEX \"Timing/?[0-9]*\\\\.\")\n"
      "if(timing)\n  set_tests_properties(\${timing} PROPERTIES LABELS \"${labels};timing\")\nendif()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_BINARY_DIR}/test_${flat}_labels.cmake)
  endforeach()
  # What tests counted is said by ctest itself, which keeps their output to itself.
  file(WRITE ${CMAKE_BINARY_DIR}/CTestCustom.cmake
    "set(CTEST_CUSTOM_PRE_TEST \"${CMAKE_COMMAND} -E rm -rf ${CMAKE_BINARY_DIR}/fixture_counts\")\n"
    "set(CTEST_CUSTOM_POST_TEST \"${CMAKE_COMMAND} -DFOLDER=${CMAKE_BINARY_DIR}/fixture_counts -P ${CMAKE_SOURCE_DIR}/tests/print_fixture_counts.cmake\")\n")
  add_dependencies(test_programs ${STARLING_PROGRAMS})
  foreach(loaded starling_arrow starling_cuda)  # libraries that programs load at run time
    if(TARGET ${loaded})
      add_dependencies(test_programs ${loaded})
    endif()
  endforeach()
  # Preloaded by tests into programs, whose wall clock then goes as the test likes.
  add_library(wall_clock MODULE ${CMAKE_SOURCE_DIR}/tests/support/wall_clock.cpp)
  set_target_properties(wall_clock PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(wall_clock PRIVATE dl)
  add_dependencies(test_programs wall_clock)
  if(TARGET test_rl_cuda)  # stands in for libnccl.so.2 and libcuda.so.1
    add_library(fake_nccl MODULE ${CMAKE_SOURCE_DIR}/tests/support/fake_nccl.cpp)
    set_target_properties(fake_nccl PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_dependencies(test_programs fake_nccl)
    add_library(fake_cuda_memory MODULE ${CMAKE_SOURCE_DIR}/tests/support/fake_cuda_memory.cpp)
    set_target_properties(fake_cuda_memory PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_dependencies(test_programs fake_cuda_memory)
  endif()
  if(TARGET test_rl_device)  # a plugin of LibTorch for a device that every machine has
    add_library(torch_standin SHARED ${CMAKE_SOURCE_DIR}/tests/support/stand_in_device.cpp)
    set_target_properties(torch_standin PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_link_libraries(torch_standin PRIVATE Starling::Torch)
    add_dependencies(test_programs torch_standin)
  endif()
  find_path(STARLING_CUDA_HEADERS cuda_runtime.h HINTS /usr/local/cuda/include NO_DEFAULT_PATH)
  if(TARGET test_rl_null_gpu AND STARLING_CUDA_HEADERS)  # a GPU that computes nothing, preloaded under LibTorch's CUDA library
    set(null_gpu ${CMAKE_SOURCE_DIR}/tests/support/null_gpu)
    add_library(null_gpu SHARED ${null_gpu}/ledger.cpp ${null_gpu}/cudart.cpp ${null_gpu}/cublas.cpp)
    target_include_directories(null_gpu PRIVATE ${CMAKE_SOURCE_DIR})
    target_include_directories(null_gpu SYSTEM PRIVATE ${STARLING_CUDA_HEADERS})
    add_library(null_gpu_driver SHARED ${null_gpu}/driver.cpp)
    set_target_properties(null_gpu_driver PROPERTIES OUTPUT_NAME cuda SOVERSION 1 VERSION 1)
    set_target_properties(null_gpu null_gpu_driver PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/null_gpu)
    add_dependencies(test_programs null_gpu null_gpu_driver)
  endif()
  if(TARGET test_sim)  # 100,000 seeds, apart from the 1,000 that its own tests run
    foreach(part RANGE 1 40)
      math(EXPR first "1001 + (${part} - 1) * 2500")
      add_test(NAME sim/many_${part} COMMAND test_sim --first ${first} --count 2500)
      set_tests_properties(sim/many_${part} PROPERTIES LABELS "sim;slow" TIMEOUT 3600)
    endforeach()
  endif()
  starling_python_tests()
  file(GLOB tidy CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/tidy/*.sh ${CMAKE_SOURCE_DIR}/tests/tidy/*.py)
  foreach(script ${tidy})
    get_filename_component(script_name ${script} NAME_WE)
    add_test(NAME tidy/${script_name} COMMAND ${script} ${CMAKE_SOURCE_DIR})
    set_tests_properties(tidy/${script_name} PROPERTIES LABELS tidy SKIP_RETURN_CODE 77)
  endforeach()
  if(NOT STARLING_SANITIZE)  # a project outside would need the sanitizer's flags too
    add_test(NAME install/outside_project
      COMMAND ${CMAKE_SOURCE_DIR}/tests/install/outside_project.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR} ${PROJECT_VERSION})
    set_tests_properties(install/outside_project PROPERTIES LABELS runtime TIMEOUT 600)
    if(STARLING_LIBTORCH)
      add_test(NAME install/outside_trainer
        COMMAND ${CMAKE_SOURCE_DIR}/tests/install/outside_trainer.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR} ${PROJECT_VERSION})
      set_tests_properties(install/outside_trainer PROPERTIES LABELS rl TIMEOUT 600)
      add_test(NAME install/gpu_component COMMAND ${CMAKE_SOURCE_DIR}/tests/install/gpu_component.sh ${CMAKE_SOURCE_DIR})
      set_tests_properties(install/gpu_component PROPERTIES LABELS rl)
    endif()
  endif()
endfunction()

# tests/fuzz/x_fuzz.cpp: a fuzz target. With clang it is a libFuzzer program. With g++ the replay driver runs the corpus in
# tests/fuzz/corpus/x.tar.gz and a bounded number of mutations. ctest does that with both.
function(starling_fuzzers)
  add_custom_target(fuzzers)
  add_dependencies(test_programs fuzzers)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    add_library(fuzz_replay OBJECT ${CMAKE_SOURCE_DIR}/tests/fuzz/driver/replay.cpp)
  endif()
  file(GLOB targets CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp)
  foreach(file ${targets})
    get_filename_component(fuzz_name ${file} NAME_WE)
    # The target says what it decodes: the folder of its first project include is its library (rl/data -> rl_data).
    file(STRINGS ${file} first_include REGEX "#include \"(rl|runtime|placement)/" LIMIT_COUNT 1)
    string(REGEX REPLACE ".*\"(rl/[a-z]+|runtime/head|runtime/metrics|runtime/node|placement/app|placement/autoscaler|runtime|placement)/.*" "\\1" library "${first_include}")
    string(REPLACE "/" "_" library "${library}")
    if(NOT TARGET ${library})
      set(library rl)  # the folders that make it up
    endif()
    if(NOT TARGET ${library})
      continue()
    endif()
    add_executable(${fuzz_name} ${file})
    target_link_libraries(${fuzz_name} PRIVATE ${library})
    set_target_properties(${fuzz_name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
      target_compile_options(${fuzz_name} PRIVATE -fsanitize=fuzzer)
      target_link_options(${fuzz_name} PRIVATE -fsanitize=fuzzer)
    else()
      target_link_libraries(${fuzz_name} PRIVATE fuzz_replay)
    endif()
    add_dependencies(fuzzers ${fuzz_name})
    string(REPLACE "_fuzz" "" corpus ${fuzz_name})
    add_test(NAME fuzz/${fuzz_name} COMMAND ${CMAKE_SOURCE_DIR}/tests/fuzz/once.sh $<TARGET_FILE:${fuzz_name}> ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${corpus}.tar.gz)
    set_tests_properties(fuzz/${fuzz_name} PROPERTIES LABELS fuzz TIMEOUT 120)
  endforeach()
endfunction()

# bench/**/bench_*.cpp: one program each.
function(starling_benchmarks)
  file(GLOB_RECURSE bench_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*/bench_*.cpp ${CMAKE_SOURCE_DIR}/bench/bench_*.cpp)
  list(FILTER bench_files EXCLUDE REGEX /bench/peers/)  # built by their own scripts, with the peer's headers
  foreach(file ${bench_files})
    get_filename_component(bench_name ${file} NAME_WE)
    file(STRINGS ${file} uses_rl REGEX "#include \"(rl/|bench/support/training_)" LIMIT_COUNT 1)
    if(uses_rl AND NOT STARLING_LIBTORCH)
      continue()
    endif()
    add_executable(${bench_name} ${file})
    if(uses_rl)
      target_link_libraries(${bench_name} PRIVATE rl allocator)
    else()
      target_link_libraries(${bench_name} PRIVATE placement allocator)
    endif()
    target_compile_definitions(${bench_name} PRIVATE STARLING_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  endforeach()
endfunction()

# The programs: `starling` and `starling-config` (no torch), `starling-rl`, and each file of examples/. STARLING_PROGRAMS lists them;
# `demo_programs` are those that `make demo` runs.
function(starling_programs)
  set(programs)
  add_custom_target(demo_programs)
  if(EXISTS ${CMAKE_SOURCE_DIR}/placement/app/starling_main.cpp)
    add_executable(starling ${CMAKE_SOURCE_DIR}/placement/app/starling_main.cpp)
    target_link_libraries(starling PRIVATE placement_app allocator)
    list(APPEND programs starling)
    add_dependencies(demo_programs starling)
  endif()
  if(STARLING_LIBTORCH)
    add_executable(starling-rl ${CMAKE_SOURCE_DIR}/rl/app/starling_rl_main.cpp)
    target_link_libraries(starling-rl PRIVATE rl_app allocator)
    list(APPEND programs starling-rl)
    add_dependencies(demo_programs starling-rl)  # `train`
  endif()
  if(STARLING_RL)
    add_executable(starling-config ${CMAKE_SOURCE_DIR}/rl/app/starling_config_main.cpp)
    target_link_libraries(starling-config PRIVATE rl_app_check)
    # What a user's reward library is loaded into: small, without torch.
    add_executable(starling-reward-host ${CMAKE_SOURCE_DIR}/rl/reward/reward_host_main.cpp
      ${CMAKE_SOURCE_DIR}/runtime/process/orphan_keeper.cpp
      ${CMAKE_SOURCE_DIR}/runtime/process/process_tree.cpp)
    target_include_directories(starling-reward-host PRIVATE ${CMAKE_SOURCE_DIR})
    target_link_libraries(starling-reward-host PRIVATE nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
    if(STARLING_SANITIZE)  # its address space is limited, and a sanitizer's shadow is larger
      target_compile_options(starling-reward-host PRIVATE -fno-sanitize=all)
      target_link_options(starling-reward-host PRIVATE -fno-sanitize=all)
    endif()
    list(APPEND programs starling-config starling-reward-host)
    add_dependencies(demo_programs starling-config)  # the --check of `train`
  endif()
  file(GLOB examples CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.cpp)
  foreach(file ${examples})
    get_filename_component(example ${file} NAME_WE)
    file(STRINGS ${file} uses_rl REGEX "#include \"(rl/|bench/support/training_)" LIMIT_COUNT 1)
    if(uses_rl AND NOT STARLING_LIBTORCH)
      continue()
    endif()
    add_executable(${example} ${file})
    list(APPEND programs ${example})
    if(uses_rl)
      target_link_libraries(${example} PRIVATE rl allocator)
    else()
      target_link_libraries(${example} PRIVATE runtime allocator)
    endif()
  endforeach()
  set(STARLING_PROGRAMS ${programs} PARENT_SCOPE)
endfunction()
