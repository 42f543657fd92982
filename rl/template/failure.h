// The failure of parsing and rendering inside: an exception that ChatTemplate turns into a Status.
// An evaluator that checked a Result after every sub-expression would be twice as long and no
// clearer; nothing else in the project sees this type.
#pragma once

#include <string>
#include <utility>

#include "runtime/core/status.h"

namespace rl {

struct TemplateFailure {
  runtime::Status status;
};

/// "line 3: the filter 'x' is not supported"
[[noreturn]] inline void fail_unsupported(int line, const std::string& what) {
  throw TemplateFailure{
      runtime::unimplemented("line " + std::to_string(line) + ": " + what + " is not supported")};
}

[[noreturn]] inline void fail_syntax(int line, const std::string& what) {
  throw TemplateFailure{runtime::invalid_argument("line " + std::to_string(line) + ": " + what)};
}

/// A failure in Python's words: "TypeError: 'NoneType' object is not iterable".
[[noreturn]] inline void fail_python(const char* exception, const std::string& what) {
  throw TemplateFailure{runtime::invalid_argument(std::string(exception) + ": " + what)};
}
[[noreturn]] inline void fail_type(const std::string& what) { fail_python("TypeError", what); }

[[noreturn]] inline void fail_limit(const std::string& what) {
  throw TemplateFailure{runtime::resource_exhausted(what)};
}

}  // namespace rl
