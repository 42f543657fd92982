#include "rl/data/toy.h"

#include <algorithm>
#include <array>
#include <utility>

#include "rl/data/random.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

constexpr std::array<std::pair<std::string_view, ToyTask>, 4> kTasks = {{
    {"count", ToyTask::kCount},
    {"copy", ToyTask::kCopy},
    {"reverse", ToyTask::kReverse},
    {"sort", ToyTask::kSort},
}};

constexpr std::array<std::string_view, 4> kSpecialTokens = {"<|pad|>", "<|end|>", "<|user|>",
                                                            "<|assistant|>"};
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";

std::string_view task_name(ToyTask task) {
  for (const auto& [name, value] : kTasks) {
    if (value == task) return name;
  }
  return "";
}

Status read_count(const ordered_json& section, const char* key, std::int64_t least,
                  std::int64_t most, std::int64_t& out) {
  if (!section.contains(key)) return Status();
  const ordered_json& value = section.at(key);
  if (!value.is_number_integer() || value.get<std::int64_t>() < least ||
      value.get<std::int64_t>() > most) {
    return invalid_argument("data.toy." + std::string(key) + ": expected an integer from " +
                            std::to_string(least) + " to " + std::to_string(most) + ", got " +
                            value.dump());
  }
  out = value.get<std::int64_t>();
  return Status();
}

std::string answer(ToyTask task, const std::string& letters, const ToyOptions& options) {
  std::string text = letters;
  switch (task) {
    case ToyTask::kCount:
      text.assign(static_cast<std::size_t>(options.length), letters.back());
      for (std::size_t i = 0; i < text.size(); ++i) {
        text[i] = kLetters[(static_cast<std::size_t>(letters.back() - 'a') + 1 + i) %
                           static_cast<std::size_t>(options.letters)];
      }
      return text;
    case ToyTask::kCopy: return text;
    case ToyTask::kReverse: std::reverse(text.begin(), text.end()); return text;
    case ToyTask::kSort: std::sort(text.begin(), text.end()); return text;
  }
  return text;
}

}  // namespace

Result<ToyOptions> ToyOptions::from_json(const ordered_json& section, std::uint64_t seed) {
  ToyOptions options;
  options.seed = seed;
  if (!section.is_object()) return options;
  if (section.contains("task")) {
    const std::string name = section.at("task").is_string() ? section.at("task").get<std::string>()
                                                            : section.at("task").dump();
    const auto found = std::find_if(kTasks.begin(), kTasks.end(),
                                    [&](const auto& task) { return task.first == name; });
    if (found == kTasks.end())
      return invalid_argument("data.toy.task: there is count, copy, reverse and sort, not '" +
                              name + "'");
    options.task = found->second;
  }
  for (const Status& status : {read_count(section, "rows", 1, 10'000'000, options.rows),
                               read_count(section, "letters", 2, 26, options.letters),
                               read_count(section, "length", 1, 64, options.length)}) {
    if (!status.ok()) return status;
  }
  return options;
}

Dataset make_toy_dataset(const ToyOptions& options) {
  SplitMix random(options.seed);
  std::vector<DataRow> rows;
  rows.reserve(static_cast<std::size_t>(options.rows));
  for (std::int64_t i = 0; i < options.rows; ++i) {
    // Counting needs only where to start; the others get all their letters.
    const std::int64_t shown = options.task == ToyTask::kCount ? 1 : options.length;
    std::string letters;
    for (std::int64_t k = 0; k < shown; ++k)
      letters += kLetters[random.below(static_cast<std::uint64_t>(options.letters))];
    DataRow row;
    row.prompt = ordered_json::array(
        {{{"role", "user"}, {"content", std::string(task_name(options.task)) + " " + letters}}});
    row.ground_truth = answer(options.task, letters, options);
    row.response = row.ground_truth;
    row.data_source = "toy";
    row.where = "toy:" + std::to_string(i + 1);
    rows.push_back(std::move(row));
  }
  return Dataset(std::move(rows));
}

std::string toy_characters() { return " " + std::string(kLetters); }

std::int64_t toy_vocab_size() {
  return static_cast<std::int64_t>(kSpecialTokens.size() + toy_characters().size());
}

std::string toy_tokenizer_json() {
  ordered_json added = ordered_json::array();
  ordered_json vocab = ordered_json::object();
  std::int64_t id = 0;
  for (std::string_view token : kSpecialTokens) {
    added.push_back({{"id", id},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
    vocab[std::string(token)] = id++;
  }
  // Byte-level tokenizers write a space as U+0120; letters stand for themselves.
  for (char c : toy_characters()) vocab[c == ' ' ? "\u0120" : std::string(1, c)] = id++;
  const ordered_json byte_level = {{"type", "ByteLevel"},
                                   {"add_prefix_space", false},
                                   {"trim_offsets", true},
                                   {"use_regex", true}};
  ordered_json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", false},
        {"vocab", vocab},
        {"merges", ordered_json::array()}}},
  };
  return tokenizer.dump(2) + "\n";
}

std::string toy_tokenizer_config_json() {
  const ordered_json config = {
      {"tokenizer_class", "PreTrainedTokenizerFast"},
      {"pad_token", kSpecialTokens[0]},
      {"eos_token", kSpecialTokens[1]},
      {"chat_template", toy_chat_template()},
      {"clean_up_tokenization_spaces", false},
      {"model_max_length", 512},
  };
  return config.dump(2) + "\n";
}

std::string toy_chat_template() {
  return "{% for message in messages %}{{ '<|' + message.role + '|>' + message.content + '<|end|>' "
         "}}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";
}

}  // namespace rl
