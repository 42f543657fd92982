// Command-line options of a benchmark.
#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "bench/support/take.h"
#include "runtime/core/printable_text.h"

namespace bench {

struct Option {
  std::string name;  // "--seconds"
  /// Where it goes: a flag, a number, a text; or nowhere (the runtime reads it).
  std::variant<bool*, double*, std::size_t*, std::string*, std::monostate> into;
  bool is_shown = true;  // to a caller that gives another
};

/// All of the text, or the program ends.
template <class Number>
Number read_number(const std::string& option, std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < Number{})
    fail(option + ": '" + runtime::printable_text(text, /*one_line=*/true) +
         "' is not a number of at least 0");
  return number;
}

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
    if (!found || (has_value && i + 1 >= argc))
      fail(runtime::printable_text(argument, /*one_line=*/true) + ": expected " + expected);
    const char* value = has_value ? argv[++i] : "";
    if (auto* flag = std::get_if<bool*>(&found->into))
      **flag = true;
    else if (auto* number = std::get_if<double*>(&found->into))
      **number = read_number<double>(argument, value);
    else if (auto* text = std::get_if<std::string*>(&found->into))
      **text = value;
    else if (auto* count = std::get_if<std::size_t*>(&found->into))
      **count = read_number<std::size_t>(argument, value);
  }
}

}  // namespace bench
