# The installed package: two components, and with STARLING_GPU a third:
#   runtime  the libraries Starling::runtime and Starling::placement with their headers, the package files, the program `starling`
#   rl       the programs `starling-rl`, `starling-config` and `starling-reward-host`, the library Starling::rl with its headers, and LibTorch next to them, so
#            that the prefix is whole without the cache
#   gpu      LibTorch's CUDA libraries and those that they load, 2.9 GB
include(CMakePackageConfigHelpers)

# The headers that users include; those that they include in turn are installed with them, and no others.
set(STARLING_PUBLIC_HEADERS runtime/runtime.h runtime/coroutine.h runtime/core/version.h placement/placement.h)
set(STARLING_PUBLIC_RL_HEADERS rl/rl.h rl/loop.h rl/run/rl/trainer_options.h rl/reward/reward_library.h)
# Starling::rl and what it stands on.
set(STARLING_RL_LIBRARIES rl rl_algo rl_comm rl_config rl_cuda rl_data rl_hub rl_kernel rl_mesh rl_metrics rl_model rl_profile rl_reward rl_rollout rl_template rl_tokenizer rl_weights)
set(STARLING_PACKAGE_FOLDER lib/cmake/Starling)

# Installs programs without their debug information, which is nine tenths of their size. It goes to bin/.debug next to them, where gdb looks. The
# names of functions for backtraces stay.
function(starling_install_programs component)
  install(TARGETS ${ARGN} RUNTIME DESTINATION bin COMPONENT ${component})
  add_dependencies(installed_files ${ARGN})
  list(TRANSFORM ARGN REPLACE "^(.+)$" "$<TARGET_FILE_NAME:\\1>" OUTPUT_VARIABLE names)
  install(CODE "
    set(objcopy \"${CMAKE_OBJCOPY}\")
    set(strip \"${CMAKE_STRIP}\")
    set(programs ${names})
    include(${CMAKE_SOURCE_DIR}/.cmake/InstallDebug.cmake)" COMPONENT ${component})
endfunction()

function(starling_install)
  add_custom_target(installed_files)  # what `make install` builds
  starling_install_runtime()
  if(TARGET starling-rl)
    starling_install_rl()
  endif()
endfunction()

function(starling_install_runtime)
  set_target_properties(runtime PROPERTIES OUTPUT_NAME starling_runtime)
  set_target_properties(placement PROPERTIES OUTPUT_NAME starling_placement)
  starling_install_programs(runtime starling)
  add_dependencies(installed_files runtime placement)
  install(TARGETS runtime placement EXPORT StarlingTargets ARCHIVE DESTINATION lib COMPONENT runtime)
  install(EXPORT StarlingTargets NAMESPACE Starling:: DESTINATION ${STARLING_PACKAGE_FOLDER} COMPONENT runtime)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/StarlingConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_SOURCE_DIR}/.cmake/StarlingConfig.cmake ${CMAKE_SOURCE_DIR}/.cmake/RuntimeDependencies.cmake
          ${CMAKE_BINARY_DIR}/package/StarlingConfigVersion.cmake
          DESTINATION ${STARLING_PACKAGE_FOLDER} COMPONENT runtime)
  install(CODE "
    set(roots ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
    set(headers ${STARLING_PUBLIC_HEADERS})
    include(${CMAKE_SOURCE_DIR}/.cmake/InstallHeaders.cmake)" COMPONENT runtime)
endfunction()

function(starling_install_rl)
  starling_install_programs(rl starling-rl starling-config starling-reward-host)
  add_dependencies(installed_files starling_arrow ${STARLING_RL_LIBRARIES})
  if(TARGET starling_cuda)
    add_dependencies(installed_files starling_cuda)
  endif()
  foreach(library ${STARLING_RL_LIBRARIES})
    set_target_properties(${library} PROPERTIES OUTPUT_NAME starling_${library})
  endforeach()
  install(TARGETS ${STARLING_RL_LIBRARIES} EXPORT StarlingRlTargets ARCHIVE DESTINATION lib COMPONENT rl)
  install(EXPORT StarlingRlTargets NAMESPACE Starling:: DESTINATION ${STARLING_PACKAGE_FOLDER} COMPONENT rl)
  install(FILES ${CMAKE_SOURCE_DIR}/.cmake/RlDependencies.cmake DESTINATION ${STARLING_PACKAGE_FOLDER} COMPONENT rl)
  install(CODE "
    set(roots ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
    set(headers ${STARLING_PUBLIC_RL_HEADERS})
    include(${CMAKE_SOURCE_DIR}/.cmake/InstallHeaders.cmake)" COMPONENT rl)
  # What ATen's headers include: custom advantages and losses are written with them.
  install(DIRECTORY ${STARLING_TORCH}/include/ATen ${STARLING_TORCH}/include/c10 ${STARLING_TORCH}/include/caffe2 ${STARLING_TORCH}/include/torch
          DESTINATION lib/starling/torch/include COMPONENT rl)
  # The folders keep the wheel's layout: libtorch_cpu.so finds cudart and cupti relative to itself.
  set_target_properties(starling-rl PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/starling/torch/lib")
  install(FILES ${STARLING_TORCH}/lib/libtorch_cpu.so ${STARLING_TORCH}/lib/libc10.so ${STARLING_TORCH}/lib/libgomp.so.1
          DESTINATION lib/starling/torch/lib COMPONENT rl)
  install(FILES ${STARLING_TORCH}/../nvidia/cu13/lib/libcudart.so.13 ${STARLING_TORCH}/../nvidia/cu13/lib/libcupti.so.13
          DESTINATION lib/starling/nvidia/cu13/lib COMPONENT rl)
  if(STARLING_GPU)
    install(CODE "
      set(wheels ${CMAKE_SOURCE_DIR}/.ci/wheels.txt)
      set(root ${STARLING_TORCH}/..)
      include(${CMAKE_SOURCE_DIR}/.cmake/InstallGpu.cmake)" COMPONENT gpu)
  endif()
  install(TARGETS starling_arrow LIBRARY DESTINATION lib COMPONENT rl)
  install(FILES ${arrow_root}/libarrow.so.2600 ${arrow_root}/libparquet.so.2600 DESTINATION lib/starling/arrow COMPONENT rl)
endfunction()
