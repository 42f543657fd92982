#include "rl/app/tokenize.h"

#include <cstdint>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "rl/app/command_line.h"
#include "rl/app/model_option.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/json.h"
#include "runtime/core/result.h"

namespace rl {

namespace {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

struct Arguments {
  ModelOption source;
  bool flag = false;   // --no-special or --skip-special
  bool batch = false;  // to be filled up, for which all lines are read first
  EncodeOptions encode;
  Padding padding;
};

void add_model(CLI::App& app, Arguments& arguments) {
  arguments.source.add_to(app, "model folder, tokenizer.json, .model or .gguf file")->required();
}

// What `starling tokenize` alone has.
struct EncodeFlags {
  std::string offsets, truncation_side = "right", padding, padding_side = "right";

  void add_to(CLI::App& app, Arguments& arguments) {
    app.add_option("--offsets", offsets,
                   "also where each token comes from: offsets in characters or bytes")
        ->check(CLI::IsMember({"characters", "bytes"}));
    app.add_option("--max-length", arguments.encode.tokens_max,
                   "cut to this many tokens, the special ones that are added included")
        ->check(whole_number_from(1));
    app.add_option("--truncation-side", truncation_side, "where tokens are cut off")
        ->check(CLI::IsMember({"left", "right"}))
        ->capture_default_str();
    app.add_option(
           "--padding", padding,
           "fill up to the longest line (longest) or to a number of tokens; adds attention_mask")
        ->check(CLI::IsMember({"longest"}) | whole_number_from(1));
    app.add_option("--padding-side", padding_side, "where it is filled up")
        ->check(CLI::IsMember({"left", "right"}))
        ->capture_default_str();
    app.add_option("--pad-to-multiple-of", arguments.padding.multiple_of,
                   "round the length of --padding up to a multiple")
        ->check(whole_number_from(1));
  }

  void apply(Arguments& arguments) const {
    if (!offsets.empty())
      arguments.encode.offsets = offsets == "bytes" ? OffsetUnit::kBytes : OffsetUnit::kCharacters;
    arguments.encode.add_special_tokens = !arguments.flag;
    arguments.encode.truncation_side = truncation_side == "left" ? Side::kLeft : Side::kRight;
    arguments.padding.side = padding_side == "left" ? Side::kLeft : Side::kRight;
    arguments.batch = !padding.empty() || arguments.padding.multiple_of > 0;
    if (!arguments.batch) return;
    const bool fixed = !padding.empty() && padding != "longest";
    arguments.padding.target = fixed ? Padding::Target::kFixed : Padding::Target::kLongest;
    if (fixed) arguments.padding.length = std::stoull(padding);
  }
};

Result<Tokenizer> load(const Arguments& arguments) {
  const auto path = arguments.source.locate(HubNeed::kTokenizer);
  return path.ok() ? Tokenizer::load(*path) : path.status();
}

// Feeds each line's JSON object to `take`.
int each_line(const std::function<Status(const json&)>& take) {
  std::string line;
  for (std::uint64_t number = 1; std::getline(std::cin, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = "stdin line " + std::to_string(number);
    const json input = runtime::parse_json(line);
    if (!input.is_object()) return fail(runtime::invalid_argument(where + ": not a JSON object"));
    if (Status status = take(input); !status.ok()) return fail(status.with_context(where));
  }
  return 0;
}

// Feeds each line's JSON object to `convert` and prints what it gives.
int convert_lines(const std::function<Result<json>(const json&)>& convert) {
  const int exit = each_line([&](const json& input) -> Status {
    auto output = convert(input);
    if (!output.ok()) return output.status();
    std::cout << output->dump() << '\n';
    // The sender may wait for this line before it sends the next.
    if (std::cin.rdbuf()->in_avail() <= 0) std::cout.flush();
    return {};
  });
  if (exit != 0) return exit;
  if (!std::cout.flush())
    return fail(runtime::resource_exhausted("stdout cannot be written (disk full?)"));
  return 0;
}

Result<std::string> text_of(const json& input) {
  auto text = input.find("text");
  if (text == input.end() || !text->is_string())
    return runtime::invalid_argument("text is missing or not a string");
  return text->get<std::string>();
}

json to_json(const Encoding& encoding, const Arguments& arguments) {
  json line = {{"ids", encoding.ids}};
  if (arguments.batch) line["attention_mask"] = encoding.attention_mask;
  if (arguments.encode.offsets != OffsetUnit::kNone) {
    json& offsets = line["offsets"] = json::array();
    for (const TokenOffsets& one : encoding.offsets) offsets.push_back({one.begin, one.end});
  }
  return line;
}

Result<json> tokenize(const Tokenizer& tokenizer, const json& input, const Arguments& arguments) {
  auto text = text_of(input);
  if (!text.ok()) return text.status();
  auto encoding = tokenizer.encode_with(*text, arguments.encode);
  if (!encoding.ok()) return encoding.status();
  return to_json(*encoding, arguments);
}

// All lines, then each filled up.
int tokenize_batch(const Tokenizer& tokenizer, const Arguments& arguments) {
  std::vector<Encoding> encodings;
  const int exit = each_line([&](const json& input) -> Status {
    auto text = text_of(input);
    if (!text.ok()) return text.status();
    auto encoding = tokenizer.encode_with(*text, arguments.encode);
    if (!encoding.ok()) return encoding.status();
    encodings.push_back(std::move(*encoding));
    return {};
  });
  if (exit != 0) return exit;
  const auto pad_id = tokenizer.padding_id();
  if (!pad_id)
    return fail(runtime::invalid_argument(
        arguments.source.model +
        ": neither a padding nor an end-of-sequence token to fill up with"));
  pad_encodings(encodings, arguments.padding, *pad_id,
                arguments.encode.offsets != OffsetUnit::kNone);
  for (const Encoding& encoding : encodings)
    std::cout << to_json(encoding, arguments).dump() << '\n';
  if (!std::cout.flush())
    return fail(runtime::resource_exhausted("stdout cannot be written (disk full?)"));
  return 0;
}

Result<json> detokenize(const Tokenizer& tokenizer, const json& input, bool skip_special_tokens) {
  auto list = input.find("ids");
  if (list == input.end() || !list->is_array())
    return runtime::invalid_argument("ids is missing or not an array");
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
  EncodeFlags flags;
  CLI::App app("Turns JSON lines {\"text\": ...} on stdin into {\"ids\": [...]} on stdout.",
               std::string("starling ") + argv[0]);
  add_model(app, arguments);
  app.add_flag("--no-special", arguments.flag,
               "leave out the tokens that the model adds around a text");
  flags.add_to(app, arguments);
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  flags.apply(arguments);
  auto tokenizer = load(arguments);
  if (!tokenizer.ok()) return fail(tokenizer.status());
  if (arguments.batch) return tokenize_batch(*tokenizer, arguments);
  return convert_lines([&](const json& input) { return tokenize(*tokenizer, input, arguments); });
}

int detokenize_command(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Turns JSON lines {\"ids\": [...]} on stdin into {\"text\": ...} on stdout.",
               std::string("starling ") + argv[0]);
  add_model(app, arguments);
  app.add_flag("--skip-special", arguments.flag, "leave special tokens out of the text");
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  auto tokenizer = load(arguments);
  if (!tokenizer.ok()) return fail(tokenizer.status());
  return convert_lines(
      [&](const json& input) { return detokenize(*tokenizer, input, arguments.flag); });
}

}  // namespace rl
