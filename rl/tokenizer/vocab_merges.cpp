// vocab.json and merges.txt, how GPT-2, OPT and Qwen2 were first published: a byte-level BPE whose
// pre-tokenizer is what its class says.
#include <utility>

#include "rl/tokenizer/bpe.h"
#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/small_files.h"
#include "rl/tokenizer/tokenizer_files.h"
#include "rl/tokenizer/unicode_text.h"
#include "rl/tokenizer/vocabulary_files.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr SpecialTokenDefault kGpt2Defaults[] = {
    {"bos_token", kEndOfText}, {"eos_token", kEndOfText}, {"unk_token", kEndOfText}};
constexpr SpecialTokenDefault kQwen2Defaults[] = {
    {"eos_token", kEndOfText}, {"unk_token", kEndOfText}, {"pad_token", kEndOfText}};

struct ByteLevelClass {
  std::span<const SpecialTokenDefault> defaults;
  bool qwen2 = false;  // Qwen2's split and normal form C, else GPT-2's split
};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<ByteLevelClass> find_class(const SlowTokenizerFiles& files) {
  const std::string& name = files.class_name;
  if (name == "GPT2Tokenizer") return ByteLevelClass{kGpt2Defaults};
  if (name == "Qwen2Tokenizer") return ByteLevelClass{kQwen2Defaults, true};
  if (!name.empty()) {
    return runtime::unimplemented("tokenizer_class " + name +
                                  " with vocab.json and merges.txt is not supported; put the "
                                  "model's tokenizer.json in the folder");
  }
  if (is_one_of(files.model_type, {"", "gpt2", "opt", "gpt_neo", "gptj"}))
    return ByteLevelClass{kGpt2Defaults};
  if (files.model_type.starts_with("qwen2") || files.model_type.starts_with("qwen3"))
    return ByteLevelClass{kQwen2Defaults, true};
  return runtime::unimplemented("how model_type " + files.model_type +
                                " splits text is not known; say tokenizer_class in "
                                "tokenizer_config.json, or put the model's " +
                                "tokenizer.json in the folder");
}

// Lines of two tokens; a first line "#version: 0.2" says nothing.
Result<MergeTable> read_merges(std::string_view text, const Vocabulary& vocabulary) {
  std::vector<std::pair<std::string_view, std::string_view>> merges;
  for (std::size_t at = 0, number = 1; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos) {
      return runtime::invalid_argument("line " + std::to_string(number) +
                                       " is not a pair of tokens");
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return make_merges(vocabulary, merges, "");
}

Result<std::unique_ptr<PreTokenizer>> make_pre_tokenizer(const SlowTokenizerFiles& files,
                                                         bool qwen2) {
  auto add_prefix_space = json_bool_or(files.config, "add_prefix_space", false);
  if (!add_prefix_space.ok())
    return add_prefix_space.status().with_context("tokenizer_config.json");
  const json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", *add_prefix_space}, {"use_regex", !qwen2}};
  if (!qwen2) return pre_tokenizer_from_json(byte_level);
  const json split = {
      {"type", "Split"}, {"pattern", {{"Regex", kQwen2Pattern}}}, {"behavior", "Isolated"}};
  return pre_tokenizer_from_json({{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}});
}

Status load_file_parts(const fs::path& folder, TokenizerPipeline& pipeline) {
  auto files = read_slow_tokenizer_files(folder);
  if (!files.ok()) return files.status();
  auto kind = find_class(*files);
  if (!kind.ok()) return kind.status().with_context(folder.string());
  const fs::path vocab_path = folder / "vocab.json";
  auto vocab = read_optional_json(vocab_path);
  if (!vocab.ok()) return vocab.status();
  if (vocab->is_null())
    return runtime::not_found(vocab_path.string() + ": is missing next to merges.txt");
  auto vocabulary = vocabulary_from_json({{"vocab", std::move(*vocab)}});
  if (!vocabulary.ok()) return vocabulary.status().with_context(vocab_path.string());
  const fs::path merges_path = folder / "merges.txt";
  auto text = read_optional_text(merges_path);
  if (!text.ok()) return text.status();
  if (!*text) return runtime::not_found(merges_path.string() + ": is missing next to vocab.json");
  if (auto at = invalid_utf8_at(**text))
    return runtime::invalid_argument(merges_path.string() + ": not UTF-8 at byte " +
                                     std::to_string(*at));
  auto merges = read_merges(**text, *vocabulary);
  if (!merges.ok()) return merges.status().with_context(merges_path.string());
  auto added = slow_added_tokens(*files, kind->defaults, *vocabulary, {});
  if (!added.ok()) return added.status().with_context(folder.string());

  auto pre_tokenizer = make_pre_tokenizer(*files, kind->qwen2);
  if (!pre_tokenizer.ok()) return pre_tokenizer.status().with_context(folder.string());
  pipeline.pre_tokenizer = std::move(*pre_tokenizer);
  if (kind->qwen2) pipeline.normalizer = make_nfc();
  BpeOptions options;
  options.pieces_are_bytes = pipeline.pre_tokenizer->defer_byte_level();
  pipeline.model =
      std::make_unique<Bpe>(std::move(*vocabulary), std::move(*merges), std::move(options));
  pipeline.decoder = make_byte_level_decoder();
  auto made = AddedTokens::make(std::move(*added), pipeline.normalizer.get());
  if (!made.ok()) return made.status().with_context(folder.string());
  pipeline.added_tokens = std::move(*made);
  add_special_token_defaults(*files, kind->defaults, pipeline);
  Status status = add_tokenizer_config(folder, *files, pipeline);
  if (!status.ok()) return status;
  return add_begin_and_end(*files, false, false, pipeline).with_context(folder.string());
}

}  // namespace

Result<std::unique_ptr<TokenizerPipeline>> tokenizer_pipeline_from_vocab_and_merges(
    const fs::path& folder) {
  auto pipeline = std::make_unique<TokenizerPipeline>();
  Status status = load_file_parts(folder, *pipeline);
  if (!status.ok()) return status;
  return pipeline;
}

}  // namespace rl
