# Files of other languages that libraries embed, and tests of those in Python.

# starling_embedded(list folder): appends to the list one C++ file for each Python program, style sheet and script right in the folder. The
# text of folder/some_name.py is kSomeName of the layer's namespace, which a header of the folder declares.
function(starling_embedded list folder)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.py ${CMAKE_SOURCE_DIR}/${folder}/*.css ${CMAKE_SOURCE_DIR}/${folder}/*.js)
  string(REGEX MATCH "^[a-z]+" layer ${folder})
  set(script ${CMAKE_SOURCE_DIR}/.cmake/EmbedText.cmake)
  foreach(file ${files})
    file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR} ${file})
    set(output ${CMAKE_BINARY_DIR}/generated/${relative}.cpp)
    add_custom_command(OUTPUT ${output} DEPENDS ${file} ${script} VERBATIM
      COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${output} -DNAMESPACE=${layer} -P ${script})
    list(APPEND ${list} ${output})
  endforeach()
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()

# tests/**/some_name_test.py: unit tests, run without the C++ program.
function(starling_python_tests)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.py)
  foreach(file ${tests})
    file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR}/tests ${file})
    string(REGEX MATCH "^[a-z]+" layer ${relative})
    string(REGEX REPLACE "_test\\.py$" "" test_name ${relative})
    add_test(NAME ${test_name} COMMAND ${CMAKE_SOURCE_DIR}/tests/support/python_test.sh ${file})
    set_tests_properties(${test_name} PROPERTIES LABELS ${layer} SKIP_RETURN_CODE 77 TIMEOUT 60)
  endforeach()
endfunction()
