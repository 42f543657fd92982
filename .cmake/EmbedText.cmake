# Run while building: writes OUTPUT, which defines the text of the Python program INPUT, a folder/some_name.py, as kSomeName of the NAMESPACE.
cmake_minimum_required(VERSION 3.25)
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
string(FIND "${text}" ")python\"" found)
if(NOT found EQUAL -1)
  message(FATAL_ERROR "${INPUT} has )python\", which ends the C++ string that it becomes")
endif()
file(WRITE ${OUTPUT} "// Made from ${name}.py.
namespace ${NAMESPACE} {
extern const char* const ${constant};
const char* const ${constant} = R\"python(
${text})python\";
}  // namespace ${NAMESPACE}
")
