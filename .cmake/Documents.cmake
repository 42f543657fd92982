# The C++ blocks of README and guide as programs that are built and run as tests, docs/<page>_<n>; tests/docs/extract.awk says how a
# block becomes one. They are built by the test docs/build rather than by `all`: prose that is wrong should fail as a test.
function(starling_documents)
  set(folder ${CMAKE_BINARY_DIR}/documents)
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/docs/guide/*.md)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${pages} ${CMAKE_SOURCE_DIR}/tests/docs/extract.awk)
  file(REMOVE_RECURSE ${folder}/new)
  file(MAKE_DIRECTORY ${folder}/new)
  set(programs)
  foreach(page ${pages})
    get_filename_component(page_name ${page} NAME_WE)
    string(TOLOWER ${page_name} page_name)
    execute_process(COMMAND awk -v page=${page_name} -v into=${folder}/new -f ${CMAKE_SOURCE_DIR}/tests/docs/extract.awk ${page}
      COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(GLOB sources ${folder}/new/*.cpp)
  foreach(source ${sources})
    get_filename_component(program ${source} NAME_WE)
    file(COPY_FILE ${source} ${folder}/${program}.cpp ONLY_IF_DIFFERENT)
    add_executable(document_${program} EXCLUDE_FROM_ALL ${folder}/${program}.cpp)
    target_link_libraries(document_${program} PRIVATE runtime)
    target_compile_options(document_${program} PRIVATE -Wno-unused)  # a page shows what a value is called, not always its use
    set_target_properties(document_${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${folder})
    list(APPEND programs document_${program})
    add_test(NAME docs/${program}
      COMMAND ${CMAKE_SOURCE_DIR}/tests/docs/run_program.sh ${CMAKE_BINARY_DIR} $<TARGET_FILE:document_${program}>)
    set_tests_properties(docs/${program} PROPERTIES LABELS docs TIMEOUT 150 FIXTURES_REQUIRED documents)
  endforeach()
  add_custom_target(documents DEPENDS ${programs})
  add_test(NAME docs/build COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target documents)
  set_tests_properties(docs/build PROPERTIES LABELS docs TIMEOUT 600 FIXTURES_SETUP documents)
  add_test(NAME docs/readme_commands
    COMMAND ${CMAKE_SOURCE_DIR}/tests/docs/run_shell.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR} README.md)
  set_tests_properties(docs/readme_commands PROPERTIES LABELS docs TIMEOUT 150)
  add_test(NAME docs/observe_commands
    COMMAND ${CMAKE_SOURCE_DIR}/tests/docs/run_shell.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR} docs/guide/observe.md)
  set_tests_properties(docs/observe_commands PROPERTIES LABELS docs TIMEOUT 150)
endfunction()
