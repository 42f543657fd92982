#include "rl/app/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <string>

#include "runtime/core/printable_text.h"
#include "runtime/core/whole_arguments.h"

namespace rl {

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  try {
    runtime::parse_whole_arguments(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::string what = error.what();
    // A mistyped option leaves a required one missing too: the mistake is what to name.
    if (const auto unknown = app.remaining(); !unknown.empty())
      what = "unknown argument " + runtime::unmarked_argument(unknown.front());
    std::cerr << "error: " << runtime::terminal_text(STDERR_FILENO, what) << "; see "
              << app.get_name() << " --help\n";
    return 2;
  }
  return std::nullopt;
}

CLI::Validator whole_number_from(std::int64_t least) {
  const auto check = [least](std::string& text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool fits = error == std::errc() && end == text.data() + text.size() && number >= least;
    return fits ? std::string()
                : "'" + text + "' is not a whole number from " + std::to_string(least);
  };
  return CLI::Validator(check, least > 0 ? "POSITIVE" : "NONNEGATIVE");
}

std::string reward_override(const std::string& given) {
  const std::size_t sign = std::min(given.find_first_not_of("+~"), given.size());
  return given.substr(0, sign) + "reward." + given.substr(sign);
}

int fail(const runtime::Status& status) {
  std::cout.flush();  // what was done before the failure is still worth having
  std::cerr << "error: " << runtime::terminal_text(STDERR_FILENO, status.message()) << "\n";
  return 1;
}

}  // namespace rl
