// Command lines that CLI11 takes as they were typed. By itself it splits what looks like "[a,b]" at
// the commas wherever an option or argument may be repeated. It also takes the next word as the
// value of "--option=".
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace runtime {

/// No argument of a process has this character, so that a value which ends with it was marked here.
inline constexpr char kWholeArgumentMark = '\0';

/// A word of the command line as it was typed.
inline std::string unmarked_argument(std::string word) {
  if (word.ends_with(kWholeArgumentMark)) word.pop_back();
  return word;
}

/// The words behind the program's name, last first as CLI11 wants them, with a mark behind those
/// that it would take apart.
inline std::vector<std::string> marked_arguments(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  for (std::string& word : words) {
    const bool is_empty_value = word.starts_with("--") && word.find('=') + 1 == word.size();
    if (word.ends_with(']') || is_empty_value) word += kWholeArgumentMark;
  }
  std::reverse(words.begin(), words.end());
  return words;
}

/// Takes the mark off each value before the option's own checks see it, in all commands of `app`.
template <class App>
void unmark_values(App& app) {
  for (auto* option : app.get_options())
    option->transform([](std::string value) { return unmarked_argument(std::move(value)); });
  for (auto* command : app.get_subcommands([](const App*) { return true; }))
    unmark_values(*command);
}

/// app.parse(), by which each value is one value and "--option=" an empty one. `app` has all its
/// options. Throws as CLI11 does; words that it does not know are left marked in app.remaining().
template <class App>
void parse_whole_arguments(App& app, int argc, const char* const* argv) {
  unmark_values(app);
  app.parse(marked_arguments(argc, argv));
}

}  // namespace runtime
