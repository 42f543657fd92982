// What a benchmark is told on its command line.
#pragma once

#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "bench/support/take.h"

namespace bench {

struct Option {
  std::string name;  // "--seconds"
  /// Where it goes: a flag, a number, a text; or nowhere (the runtime reads it).
  std::variant<bool*, double*, std::size_t*, std::string*, std::monostate> into;
  bool is_shown = true;  // to whoever gives another
};

/// Ends the program, naming the options that there are, at anything else.
inline void read_options(int argc, char** argv, const std::vector<Option>& options) {
  std::string expected;
  for (const Option& option : options) {
    if (!option.is_shown) continue;
    expected += (expected.empty() ? "" : ", ") + option.name +
                (std::holds_alternative<bool*>(option.into)          ? ""
                 : std::holds_alternative<std::string*>(option.into) ? " TEXT"
                                                                     : " NUMBER");
  }
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const Option* found = nullptr;
    for (const Option& option : options) {
      if (option.name == argument) found = &option;
    }
    const bool has_value = found && !std::holds_alternative<bool*>(found->into);
    if (!found || (has_value && i + 1 >= argc)) fail(argument + ": expected " + expected);
    const char* value = has_value ? argv[++i] : "";
    if (auto* flag = std::get_if<bool*>(&found->into))
      **flag = true;
    else if (auto* number = std::get_if<double*>(&found->into))
      **number = std::atof(value);
    else if (auto* text = std::get_if<std::string*>(&found->into))
      **text = value;
    else if (auto* count = std::get_if<std::size_t*>(&found->into))
      **count = static_cast<std::size_t>(std::strtoull(value, nullptr, 10));
  }
}

}  // namespace bench
