#include "rl/command/tokenize.h"

#include <cstdint>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "rl/command/command_line.h"
#include "rl/command/model_option.h"
#include "rl/text/tokenizer.h"
#include "runtime/core/result.h"

namespace rl {

namespace {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

struct Arguments {
  ModelOption source;
  bool flag = false;  // --no-special or --skip-special
};

// Parses the options that both commands have; as parse_command_line().
std::optional<int> parse_arguments(int argc, char** argv, const std::string& description, const std::string& flag, const std::string& flag_help,
                    Arguments& arguments) {
  CLI::App app(description, std::string("starling ") + argv[0]);
  arguments.source.add_to(app, "model folder, tokenizer.json or .gguf file")->required();
  app.add_flag(flag, arguments.flag, flag_help);
  return parse_command_line(app, argc, argv);
}

Result<Tokenizer> load(const Arguments& arguments) {
  const auto path = arguments.source.locate(HubNeed::kTokenizer);
  return path.ok() ? Tokenizer::load(*path) : path.status();
}

// Feeds each line's JSON object to `convert` and prints what it gives.
int convert_lines(const std::function<Result<json>(const json&)>& convert) {
  std::string line;
  for (std::uint64_t number = 1; std::getline(std::cin, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = "stdin line " + std::to_string(number);
    const json input = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!input.is_object()) return fail(runtime::invalid_argument(where + ": not a JSON object"));
    auto output = convert(input);
    if (!output.ok()) return fail(output.status().with_context(where));
    std::cout << output->dump() << '\n';
    // Somebody may be waiting for this line before sending the next.
    if (std::cin.rdbuf()->in_avail() <= 0) std::cout.flush();
  }
  if (!std::cout.flush()) return fail(runtime::resource_exhausted("stdout cannot be written (disk full?)"));
  return 0;
}

Result<json> tokenize(const Tokenizer& tokenizer, const json& input, bool add_special_tokens) {
  auto text = input.find("text");
  if (text == input.end() || !text->is_string()) return runtime::invalid_argument("text is missing or not a string");
  auto ids = tokenizer.encode(text->get_ref<const std::string&>(), add_special_tokens);
  if (!ids.ok()) return ids.status();
  return json{{"ids", *ids}};
}

Result<json> detokenize(const Tokenizer& tokenizer, const json& input, bool skip_special_tokens) {
  auto list = input.find("ids");
  if (list == input.end() || !list->is_array()) return runtime::invalid_argument("ids is missing or not an array");
  std::vector<std::int32_t> ids;
  ids.reserve(list->size());
  for (const json& id : *list) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > INT32_MAX) {
      return runtime::invalid_argument("ids[" + std::to_string(ids.size()) + "] is not a token id");
    }
    ids.push_back(id.get<std::int32_t>());
  }
  auto text = tokenizer.decode_checked(ids, skip_special_tokens);
  if (!text.ok()) return text.status();
  return json{{"text", *text}};
}

}  // namespace

int tokenize_command(int argc, char** argv) {
  Arguments arguments;
  const std::optional<int> exit = parse_arguments(argc, argv, "Turns JSON lines {\"text\": ...} on stdin into {\"ids\": [...]} on stdout.",
                                        "--no-special", "leave out the tokens that the model adds around a text", arguments);
  if (exit) return *exit;
  auto tokenizer = load(arguments);
  if (!tokenizer.ok()) return fail(tokenizer.status());
  return convert_lines([&](const json& input) { return tokenize(*tokenizer, input, !arguments.flag); });
}

int detokenize_command(int argc, char** argv) {
  Arguments arguments;
  const std::optional<int> exit = parse_arguments(argc, argv, "Turns JSON lines {\"ids\": [...]} on stdin into {\"text\": ...} on stdout.",
                                        "--skip-special", "leave special tokens out of the text", arguments);
  if (exit) return *exit;
  auto tokenizer = load(arguments);
  if (!tokenizer.ok()) return fail(tokenizer.status());
  return convert_lines([&](const json& input) { return detokenize(*tokenizer, input, arguments.flag); });
}

}  // namespace rl
