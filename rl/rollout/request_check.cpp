#include "rl/rollout/request_check.h"

#include <algorithm>
#include <string>

#include "rl/model/transformer.h"
#include "rl/rollout/beam_search.h"

namespace rl {
namespace {

runtime::Status outside_vocabulary(const char* field, std::int32_t id, std::int64_t vocab) {
  return runtime::invalid_argument("request: " + std::string(field) + ": token id " +
                                   std::to_string(id) + " is outside the vocabulary of " +
                                   std::to_string(vocab));
}

runtime::Status check_numbers(const Request& request) {
  if (request.prompt_ids.empty()) return runtime::invalid_argument("request: the prompt is empty");
  if (request.n < 1 || request.n > kSamplesMax) {
    return runtime::invalid_argument("request: n is " + std::to_string(request.n) + "; from 1 to " +
                                     std::to_string(kSamplesMax));
  }
  if (request.best_of != 0 && (request.best_of < request.n || request.best_of > kSamplesMax)) {
    return runtime::invalid_argument("request: best_of is " + std::to_string(request.best_of) +
                                     "; 0 (none), or from n, " + std::to_string(request.n) +
                                     ", to " + std::to_string(kSamplesMax));
  }
  return {};
}

runtime::Status check_ids(const EngineSetting& setting, const Request& request) {
  const std::int64_t vocab = setting.model.config().vocab_size;
  const auto outside = [vocab](std::int32_t id) { return id < 0 || id >= vocab; };
  for (const std::int32_t id : request.prompt_ids) {
    if (outside(id)) return outside_vocabulary("prompt_ids", id, vocab);
  }
  for (const LogitBias& bias : request.sampling.logit_bias) {
    if (outside(bias.id)) return outside_vocabulary("logit_bias", bias.id, vocab);
  }
  for (const std::int32_t id : request.sampling.stop_ids) {
    if (outside(id)) return outside_vocabulary("stop_ids", id, vocab);
  }
  for (const std::vector<std::int32_t>& word : request.sampling.bad_words) {
    for (const std::int32_t id : word) {
      if (outside(id)) return outside_vocabulary("bad_words", id, vocab);
    }
  }
  return {};
}

runtime::Status check_begun(const EngineSetting& setting, const Request& request) {
  if (request.partial.empty()) return {};
  const SamplingParams& sampling = request.sampling;
  const bool plain = sampling.beam.width == 0 && request.best_of == 0 &&
                     sampling.stop_strings.empty() && !sampling.text &&
                     sampling.top_logprobs == 0 && !sampling.processed_logprobs &&
                     !sampling.prompt_logprobs && sampling.prompt_top_logprobs == 0;
  if (!plain)
    return runtime::invalid_argument(
        "request: partial samples go with ids and their log-probabilities only: no beam search, "
        "best_of, stop strings, text, top, processed or prompt log-probabilities");
  if (static_cast<std::int64_t>(request.partial.size()) != request.n) {
    return runtime::invalid_argument("request: " + std::to_string(request.partial.size()) +
                                     " partial samples, n is " + std::to_string(request.n));
  }
  const std::int64_t room =
      std::min(sampling.max_new_tokens,
               setting.context_max() - static_cast<std::int64_t>(request.prompt_ids.size()));
  for (const PartialSample& sample : request.partial) {
    std::int64_t versioned = 0;
    for (const VersionRun& run : sample.weight_versions) versioned += run.tokens;
    const auto tokens = static_cast<std::int64_t>(sample.ids.size());
    if (sample.logprobs.size() != sample.ids.size() || versioned != tokens)
      return runtime::invalid_argument(
          "request: partial sample: ids, log-probabilities and versions differ in number");
    if (tokens > room || (tokens == room && !sample.finished)) {
      return runtime::invalid_argument("request: partial sample: " + std::to_string(tokens) +
                                       " tokens leave none to generate of " + std::to_string(room));
    }
    if (sample.finished && tokens == 0)
      return runtime::invalid_argument("request: partial sample: it has finished without a token");
    for (const std::int32_t id : sample.ids) {
      if (id < 0 || id >= setting.model.config().vocab_size)
        return outside_vocabulary("partial", id, setting.model.config().vocab_size);
    }
  }
  return {};
}

runtime::Status check_beams(const EngineSetting& setting, const Request& request) {
  const SamplingParams& sampling = request.sampling;
  const std::int64_t width = sampling.beam.width;
  if (width == 0) return {};
  if (request.n > width)
    return runtime::invalid_argument("request: n is " + std::to_string(request.n) +
                                     ", above beam.width " + std::to_string(width));
  if (request.best_of != 0)
    return runtime::invalid_argument("request: best_of does not go with beam.width " +
                                     std::to_string(width) + "; n of the hypotheses are returned");
  const std::int64_t wanted =
      BeamSearch(sampling.beam, setting.stop_ids(sampling), 1).candidates_per_beam();
  if (wanted > setting.model.config().vocab_size) {
    return runtime::invalid_argument("request: beam.width " + std::to_string(width) + " takes " +
                                     std::to_string(wanted) + " candidates, the vocabulary has " +
                                     std::to_string(setting.model.config().vocab_size) + " tokens");
  }
  return {};
}

runtime::Status check_room(const EngineSetting& setting, const KvCache& cache,
                           const Request& request) {
  const SamplingParams& sampling = request.sampling;
  const auto length = static_cast<std::int64_t>(request.prompt_ids.size());
  const std::int64_t room = setting.context_max() - (sampling.max_new_tokens > 0 ? 1 : 0);
  if (length > room) {
    return runtime::invalid_argument("request: the prompt has " + std::to_string(length) +
                                     " tokens, the context holds " +
                                     std::to_string(setting.context_max()));
  }
  const std::int64_t longest =
      length + std::min(setting.context_max() - length, sampling.max_new_tokens);
  const std::int64_t blocks = (longest + cache.block_tokens() - 1) / cache.block_tokens();
  if (blocks > cache.blocks()) {
    return runtime::resource_exhausted("request: " + std::to_string(longest) + " tokens take " +
                                       std::to_string(blocks) + " cache blocks, there are " +
                                       std::to_string(cache.blocks()) +
                                       "; raise the cache's bytes_max");
  }
  return {};
}

}  // namespace

runtime::Status check_request(const EngineSetting& setting, const KvCache& cache, std::int64_t open,
                              const Request& request) {
  const SamplingParams& sampling = request.sampling;
  if (open >= setting.options.requests_max) {
    return runtime::resource_exhausted("request: the engine has " + std::to_string(open) +
                                       " requests; take less at a time or raise requests_max");
  }
  if (runtime::Status status = check_numbers(request); !status.ok()) return status;
  if (runtime::Status status = check_ids(setting, request); !status.ok()) return status;
  if (runtime::Status status = sampling.validate(); !status.ok()) return status;
  if (runtime::Status status = check_beams(setting, request); !status.ok()) return status;
  if (runtime::Status status = check_begun(setting, request); !status.ok()) return status;
  if (!setting.options.tokenizer && !sampling.stop_strings.empty())
    return runtime::invalid_argument(
        "request: stop_strings need a tokenizer: EngineOptions::tokenizer");
  if (!setting.options.tokenizer && sampling.text)
    return runtime::invalid_argument("request: text needs a tokenizer: EngineOptions::tokenizer");
  return check_room(setting, cache, request);
}

}  // namespace rl
