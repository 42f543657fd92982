# Run while building: writes OUTPUT, which defines the text of INPUT, a file some_name.py or the like, as kSomeName of the NAMESPACE.
cmake_minimum_required(VERSION 3.25)
get_filename_component(file ${INPUT} NAME)
get_filename_component(name ${INPUT} NAME_WE)
string(REGEX MATCHALL "[^_]+" words ${name})
set(constant k)
foreach(word ${words})
  string(SUBSTRING ${word} 0 1 first)
  string(SUBSTRING ${word} 1 -1 rest)
  string(TOUPPER ${first} first)
  string(APPEND constant ${first}${rest})
endforeach()
file(READ ${INPUT} text)
string(FIND "${text}" ")embedded\"" found)
if(NOT found EQUAL -1)
  message(FATAL_ERROR "${INPUT} has )embedded\", which ends the C++ string that it becomes")
endif()
file(WRITE ${OUTPUT} "// Made from ${file}.
namespace ${NAMESPACE} {
extern const char* const ${constant};
const char* const ${constant} = R\"embedded(
${text})embedded\";
}  // namespace ${NAMESPACE}
")
