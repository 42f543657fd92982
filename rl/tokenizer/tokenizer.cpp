#include "rl/tokenizer/tokenizer.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "rl/template/chat_templates.h"
#include "rl/tokenizer/pipeline.h"
#include "rl/tokenizer/tokenizer_files.h"
#include "runtime/core/check.h"
#include "runtime/core/cpu_limit.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"

namespace rl {

using runtime::Result;

namespace {

Result<Tokenizer> wrap(Result<std::unique_ptr<TokenizerPipeline>> pipeline) {
  if (!pipeline.ok()) return pipeline.status();
  return Tokenizer(std::shared_ptr<const TokenizerPipeline>(std::move(*pipeline)));
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const TokenizerPipeline> pipeline)
    : pipeline_(std::move(pipeline)) {
  CHECK(pipeline_ != nullptr);
}

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& model) {
  return wrap(load_tokenizer_pipeline(model));
}

Result<Tokenizer> Tokenizer::from_json(std::string_view text, std::string_view name) {
  return wrap(tokenizer_pipeline_from_json(text, name));
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text,
                                                    bool add_special_tokens) const {
  return pipeline_->encode(text, add_special_tokens);
}

Result<Encoding> Tokenizer::encode_with(std::string_view text, const EncodeOptions& options) const {
  return pipeline_->encode_with(text, options);
}

Result<std::vector<Encoding>> Tokenizer::encode_batch(std::span<const std::string_view> texts,
                                                      const EncodeOptions& options,
                                                      const Padding& padding,
                                                      std::size_t threads) const {
  if (padding.target != Padding::Target::kNone && !padding_id()) {
    return runtime::invalid_argument(
        "the tokenizer has neither a padding nor an end-of-sequence token to fill up with");
  }
  std::vector<Encoding> encodings(texts.size());
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::pair<std::size_t, runtime::Status> failed = {texts.size(),
                                                    {}};  // the first text that failed
  const auto work = [&] {
    for (std::size_t i = next++; i < texts.size(); i = next++) {
      auto encoding = pipeline_->encode_with(texts[i], options);
      if (encoding.ok()) {
        encodings[i] = std::move(*encoding);
        continue;
      }
      std::lock_guard lock(mutex);
      if (i < failed.first) failed = {i, encoding.status()};
    }
  };
  if (threads == 0) threads = static_cast<std::size_t>(runtime::cpu_threads());
  threads = std::min(threads, std::max<std::size_t>(texts.size(), 1));
  {
    const runtime::HelperThreads others(threads - 1, work);
    work();
  }
  if (failed.first < texts.size())
    return failed.second.with_context("text " + std::to_string(failed.first));
  if (padding.target != Padding::Target::kNone)
    pad_encodings(encodings, padding, *padding_id(), options.offsets != OffsetUnit::kNone);
  return encodings;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  return pipeline_->decode(ids, skip_special_tokens);
}

Result<std::string> Tokenizer::decode_checked(std::span<const std::int32_t> ids,
                                              bool skip_special_tokens) const {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!pipeline_->token(ids[i]).empty() || pipeline_->added_tokens.find(ids[i]) != nullptr)
      continue;
    return runtime::invalid_argument("id " + std::to_string(ids[i]) + " at position " +
                                     std::to_string(i) + " is not in the vocabulary of " +
                                     std::to_string(vocab_size()));
  }
  return decode(ids, skip_special_tokens);
}

std::string_view Tokenizer::kind() const { return pipeline_->model->kind(); }

std::int32_t Tokenizer::vocab_size() const { return pipeline_->size(); }

std::optional<std::int32_t> Tokenizer::token_to_id(std::string_view token) const {
  return pipeline_->find(token);
}

std::string Tokenizer::id_to_token(std::int32_t id) const {
  return std::string(pipeline_->token(id));
}

bool Tokenizer::is_special(std::int32_t id) const { return pipeline_->is_special(id); }

std::optional<std::int32_t> Tokenizer::bos_id() const { return pipeline_->bos_id; }
std::optional<std::int32_t> Tokenizer::eos_id() const { return pipeline_->eos_id; }
std::optional<std::int32_t> Tokenizer::pad_id() const { return pipeline_->pad_id; }

std::optional<std::int32_t> Tokenizer::padding_id() const {
  if (pipeline_->pad_id) return pipeline_->pad_id;
  if (pipeline_->eos_id) {
    std::call_once(pipeline_->said_padding, [this] {
      LOG(info, "the tokenizer has no padding token: its end-of-sequence token {} is used, masked",
          id_to_token(*pipeline_->eos_id));
    });
  }
  return pipeline_->eos_id;
}

const std::map<std::string, std::string>& Tokenizer::chat_templates() const {
  return pipeline_->chat_templates;
}

const std::string& Tokenizer::chat_template_source() const {
  static const std::string none;
  const auto& all = pipeline_->chat_templates;
  const auto found = all.find(kDefaultTemplate);
  if (found != all.end()) return found->second;
  return all.empty() ? none : all.begin()->second;
}

const std::map<std::string, std::string>& Tokenizer::special_token_texts() const {
  return pipeline_->special_token_texts;
}

}  // namespace rl
