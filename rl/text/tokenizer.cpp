#include "rl/text/tokenizer.h"

#include <utility>

#include "rl/text/tokenizer_files.h"
#include "rl/text/tokenizer_pipeline.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Result;

namespace {

Result<Tokenizer> wrap(Result<std::unique_ptr<TokenizerPipeline>> pipeline) {
  if (!pipeline.ok()) return pipeline.status();
  return Tokenizer(std::shared_ptr<const TokenizerPipeline>(std::move(*pipeline)));
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const TokenizerPipeline> pipeline) : pipeline_(std::move(pipeline)) {
  CHECK(pipeline_ != nullptr);
}

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& model) { return wrap(load_tokenizer_pipeline(model)); }

Result<Tokenizer> Tokenizer::from_json(std::string_view json, std::string_view name) {
  return wrap(tokenizer_pipeline_from_json(json, name));
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  return pipeline_->encode(text, add_special_tokens);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  return pipeline_->decode(ids, skip_special_tokens);
}

Result<std::string> Tokenizer::decode_checked(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!pipeline_->token(ids[i]).empty()) continue;
    return runtime::invalid_argument("id " + std::to_string(ids[i]) + " at position " + std::to_string(i) +
                                     " is not in the vocabulary of " + std::to_string(vocab_size()));
  }
  return decode(ids, skip_special_tokens);
}

std::int32_t Tokenizer::vocab_size() const { return pipeline_->size(); }

std::optional<std::int32_t> Tokenizer::token_to_id(std::string_view token) const { return pipeline_->find(token); }

std::string Tokenizer::id_to_token(std::int32_t id) const { return std::string(pipeline_->token(id)); }

bool Tokenizer::is_special(std::int32_t id) const { return pipeline_->is_special(id); }

std::optional<std::int32_t> Tokenizer::bos_id() const { return pipeline_->bos_id; }
std::optional<std::int32_t> Tokenizer::eos_id() const { return pipeline_->eos_id; }
std::optional<std::int32_t> Tokenizer::pad_id() const { return pipeline_->pad_id; }

const std::string& Tokenizer::chat_template_source() const { return pipeline_->chat_template; }

const std::map<std::string, std::string>& Tokenizer::special_token_texts() const { return pipeline_->special_token_texts; }

}  // namespace rl
