// tokenizer.json to a pipeline.
#include <nlohmann/json.hpp>

#include "rl/tokenizer/bytes.h"
#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/json_overrides.h"
#include "rl/tokenizer/tokenizer_files.h"
#include "rl/tokenizer/unicode_text.h"
#include "rl/weights/mapped_file.h"
#include "runtime/core/json.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kTokenizerBytesMax = 256 << 20;  // the largest published ones are near 40 MB

// Fills `part` from the member `key` when it is there.
template <class Part, class Load>
Status load_part(const json& tokenizer, const char* key, Part& part, Load load) {
  const json* member = json_member(tokenizer, key);
  if (member == nullptr) return {};
  auto loaded = load(*member);
  if (!loaded.ok()) return loaded.status().with_context(key);
  part = std::move(*loaded);
  return {};
}

bool spells_every_byte(const json& model) {
  const json* vocabulary = json_member(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object()) return false;
  for (int byte = 0; byte < 256; ++byte) {
    std::string spelled;
    append_utf8(byte_to_character(static_cast<std::uint8_t>(byte)), spelled);
    if (!vocabulary->contains(spelled)) return false;
  }
  return true;
}

// A byte-level BPE takes the bytes themselves where the last step before it would only have spelled
// them out. Not where a spelling that the vocabulary lacks falls back to the bytes of the spelling.
bool defer_byte_level(const json& model, TokenizerPipeline& pipeline) {
  const auto is = [&model](const char* key, std::string_view wanted, std::string_view otherwise) {
    auto value = json_string_or(model, key, otherwise);
    return value.ok() && *value == wanted;
  };
  const bool plain_bpe = is("type", "BPE", json_member(model, "merges") != nullptr ? "BPE" : "") &&
                         is("continuing_subword_prefix", "", "") &&
                         is("end_of_word_suffix", "", "");
  const json* fallback = json_member(model, "byte_fallback");
  if (fallback != nullptr && *fallback == true && !spells_every_byte(model)) return false;
  return plain_bpe && pipeline.pre_tokenizer != nullptr &&
         pipeline.pre_tokenizer->defer_byte_level();
}

Status load_json_parts(const json& tokenizer, TokenizerPipeline& pipeline) {
  Status status = load_part(tokenizer, "normalizer", pipeline.normalizer,
                            [](const json& j) { return normalizer_from_json(j); });
  if (!status.ok()) return status;
  status = load_part(tokenizer, "pre_tokenizer", pipeline.pre_tokenizer,
                     [](const json& j) { return pre_tokenizer_from_json(j); });
  if (!status.ok()) return status;
  const json* model = json_member(tokenizer, "model");
  if (model == nullptr)
    return runtime::invalid_argument("model is missing; this is not a tokenizer.json");
  const bool pieces_are_bytes = defer_byte_level(*model, pipeline);
  status = load_part(tokenizer, "model", pipeline.model,
                     [&](const json& j) { return token_model_from_json(j, pieces_are_bytes); });
  if (!status.ok()) return status;
  status = load_part(tokenizer, "post_processor", pipeline.post_processor,
                     [](const json& j) { return post_processor_from_json(j); });
  if (!status.ok()) return status;
  status = load_part(tokenizer, "decoder", pipeline.decoder,
                     [](const json& j) { return decoder_from_json(j); });
  if (!status.ok()) return status;
  auto added = added_tokens_from_json(tokenizer);
  if (!added.ok()) return added.status();
  auto made = AddedTokens::make(std::move(*added), pipeline.normalizer.get());
  if (!made.ok()) return made.status();
  pipeline.added_tokens = std::move(*made);
  return {};
}

Result<std::unique_ptr<TokenizerPipeline>> load_sentencepiece_file(const fs::path& path,
                                                                   const fs::path& folder) {
  auto file = MappedFile::open(path);
  if (!file.ok()) return file.status();
  if (file->bytes().size() > kTokenizerBytesMax)
    return runtime::invalid_argument(path.string() + ": too long for a tokenizer");
  return tokenizer_pipeline_from_sentencepiece(
      {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}, path.string(),
      folder);
}

// A folder without tokenizer.json.
Result<std::unique_ptr<TokenizerPipeline>> load_slow_tokenizer_pipeline(const fs::path& folder) {
  std::error_code ignored;
  for (const char* name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}) {
    if (fs::exists(folder / name, ignored)) return load_sentencepiece_file(folder / name, folder);
  }
  if (fs::exists(folder / "merges.txt", ignored) || fs::exists(folder / "vocab.json", ignored))
    return tokenizer_pipeline_from_vocab_and_merges(folder);
  return runtime::not_found(folder.string() +
                            ": holds no tokenizer.json, no tokenizer.model, no vocab.json with "
                            "merges.txt; fetch them from where the model came from");
}

}  // namespace

namespace {

// `files` may be those of no folder.
Result<std::unique_ptr<TokenizerPipeline>> pipeline_from_json(std::string_view text,
                                                              std::string_view name,
                                                              const SlowTokenizerFiles& files) {
  if (text.size() > kTokenizerBytesMax)
    return runtime::invalid_argument(std::string(name) + ": too long for a tokenizer.json");
  json tokenizer = runtime::parse_json(text);
  if (tokenizer.is_discarded() || !tokenizer.is_object()) {
    return runtime::invalid_argument(std::string(name) +
                                     ": not a JSON object; the file is damaged, fetch it again");
  }
  if (Status status = apply_space_options(files, tokenizer); !status.ok())
    return status.with_context(name);
  auto pipeline = std::make_unique<TokenizerPipeline>();
  Status status = load_json_parts(tokenizer, *pipeline);
  if (!status.ok()) return status.with_context(name);
  return pipeline;
}

}  // namespace

Result<std::unique_ptr<TokenizerPipeline>> tokenizer_pipeline_from_json(std::string_view text,
                                                                        std::string_view name) {
  return pipeline_from_json(text, name, {});
}

Result<std::unique_ptr<TokenizerPipeline>> load_tokenizer_pipeline(const fs::path& model) {
  if (model.extension() == ".gguf") {
    auto file = GgufFile::open(model);
    if (!file.ok()) return file.status();
    return tokenizer_pipeline_from_gguf(**file);
  }
  if (model.extension() == ".model") return load_sentencepiece_file(model, model.parent_path());
  std::error_code ignored;
  const bool is_folder = fs::is_directory(model, ignored);
  const fs::path path = is_folder ? model / "tokenizer.json" : model;
  auto file = MappedFile::open(path);
  if (!file.ok()) {
    if (is_folder && file.status().code() == runtime::ErrorCode::kNotFound)
      return load_slow_tokenizer_pipeline(model);
    return file.status();
  }
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  auto files = read_slow_tokenizer_files(folder);
  if (!files.ok()) return files.status();
  auto pipeline = pipeline_from_json(text, path.string(), *files);
  if (!pipeline.ok()) return pipeline;
  Status status = apply_added_tokens(*files, **pipeline);
  if (!status.ok()) return status.with_context(folder.string());
  add_class_defaults(*files, **pipeline);
  status = add_tokenizer_config(folder, *files, **pipeline);
  if (!status.ok()) return status;
  return pipeline;
}

}  // namespace rl
