#include "rl/rollout/generation_config.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string_view>

#include "runtime/core/json.h"
#include "runtime/core/rest_of.h"

namespace rl {

using nlohmann::json;
using runtime::json_member;
using runtime::Result;

namespace {

constexpr std::int64_t kTopKOtherwise = 50;  // transformers' when sampling
constexpr std::size_t kFileBytesMax = 16 << 20;

// Options that this engine does not have, and the value at which they do nothing (null always does
// nothing).
struct Missing {
  const char* key;
  json neutral;
};

const std::vector<Missing>& missing_options() {
  static const std::vector<Missing> options = {{"num_beam_groups", 1},
                                               {"penalty_alpha", 0.0},
                                               {"typical_p", 1.0},
                                               {"epsilon_cutoff", 0.0},
                                               {"eta_cutoff", 0.0},
                                               {"top_h", nullptr},
                                               {"no_repeat_ngram_size", 0},
                                               {"encoder_no_repeat_ngram_size", 0},
                                               {"encoder_repetition_penalty", 1.0},
                                               {"force_words_ids", nullptr},
                                               {"constraints", nullptr},
                                               {"forced_bos_token_id", nullptr},
                                               {"forced_eos_token_id", nullptr},
                                               {"begin_suppress_tokens", nullptr},
                                               {"sequence_bias", nullptr},
                                               {"guidance_scale", 1.0},
                                               {"diversity_penalty", 0.0},
                                               {"exponential_decay_length_penalty", nullptr},
                                               {"min_length", 0},
                                               {"watermarking_config", nullptr},
                                               {"dola_layers", nullptr},
                                               {"token_healing", false},
                                               {"max_time", nullptr}};
  return options;
}

// What says nothing about the text that comes out, or is read elsewhere: by the model's config
// (ids), or as the context's limit.
bool is_neutral_key(std::string_view key) {
  constexpr std::string_view kKeys[] = {"eos_token_id",
                                        "bos_token_id",
                                        "pad_token_id",
                                        "decoder_start_token_id",
                                        "max_length",
                                        "transformers_version",
                                        "use_cache",
                                        "cache_implementation",
                                        "cache_config",
                                        "max_cache_len",
                                        "output_attentions",
                                        "output_hidden_states",
                                        "output_scores",
                                        "output_logits",
                                        "return_dict_in_generate",
                                        "renormalize_logits",
                                        "remove_invalid_values",
                                        "is_assistant",
                                        "num_assistant_tokens",
                                        "num_assistant_tokens_schedule",
                                        "assistant_confidence_threshold",
                                        "prompt_lookup_num_tokens",
                                        "max_matching_ngram_size",
                                        "assistant_early_exit",
                                        "assistant_lookbehind",
                                        "target_lookbehind",
                                        "assistant_ensemble_weight",
                                        "speculation_type",
                                        "use_mtp",
                                        "compile_config",
                                        "disable_compile",
                                        "continuous_batching_config",
                                        "low_memory",
                                        "prefill_chunk_size",
                                        "chat_format"};
  return key.starts_with('_') ||
         std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

bool does_nothing(const json& value, const json& neutral) {
  if (value.is_null() || value == neutral) return true;
  return (value.is_array() || value.is_object()) && value.empty();
}

// Reads members and keeps the first failure.
class Reader {
 public:
  Reader(const json& object, const std::string& name) : object_(object), name_(name) {}

  void number(const char* key, std::optional<float>& out) {
    const json* value = json_member(object_, key);
    if (value == nullptr) return;
    if (!value->is_number() || !std::isfinite(value->get<float>()))
      return wrong(key, *value, "a number");
    out = value->get<float>();
  }

  void integer(const char* key, std::optional<std::int64_t>& out) {
    const json* value = json_member(object_, key);
    if (value == nullptr) return;
    if (!value->is_number_integer() ||
        (value->is_number_unsigned() && value->get<std::uint64_t>() > INT32_MAX))
      return wrong(key, *value, "a small integer");
    out = value->get<std::int64_t>();
  }

  void boolean(const char* key, std::optional<bool>& out) {
    const json* value = json_member(object_, key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return wrong(key, *value, "true or false");
    out = value->get<bool>();
  }

  void early_stopping(std::optional<BeamSearchParams::Stop>& out) {
    const json* value = json_member(object_, "early_stopping");
    if (value == nullptr) return;
    using Stop = BeamSearchParams::Stop;
    if (value->is_boolean())
      out = value->get<bool>() ? Stop::kFirst : Stop::kHeuristic;
    else if (*value == "never")
      out = Stop::kNever;
    else
      wrong("early_stopping", *value, "true, false or \"never\"");
  }

  void token_lists(std::vector<std::vector<std::int32_t>>& out) {
    if (const json* words = json_member(object_, "bad_words_ids"); words != nullptr) {
      if (!words->is_array()) return wrong("bad_words_ids", *words, "a list of lists of token ids");
      for (const json& word : *words) {
        if (!are_ids(word) || word.empty())
          return wrong("bad_words_ids", *words, "a list of lists of token ids");
        out.push_back(word.get<std::vector<std::int32_t>>());
      }
    }
    if (const json* ids = json_member(object_, "suppress_tokens"); ids != nullptr) {
      if (!are_ids(*ids)) return wrong("suppress_tokens", *ids, "a list of token ids");
      for (const json& id : *ids) out.push_back({id.get<std::int32_t>()});
    }
  }

  void texts(const char* key, std::vector<std::string>& out) {
    const json* value = json_member(object_, key);
    if (value == nullptr) return;
    if (value->is_string()) return out.push_back(value->get<std::string>());
    if (!value->is_array() || !std::all_of(value->begin(), value->end(),
                                           [](const json& text) { return text.is_string(); }))
      return wrong(key, *value, "a text or a list of texts");
    out = value->get<std::vector<std::string>>();
  }

  runtime::Status status() const { return status_; }

 private:
  static bool are_ids(const json& value) {
    return value.is_array() && std::all_of(value.begin(), value.end(), [](const json& id) {
             return id.is_number_integer() && id >= 0 && id <= INT32_MAX;
           });
  }

  void wrong(const char* key, const json& value, const char* wanted) {
    if (!status_.ok()) return;
    status_ = runtime::invalid_argument(name_ + ": " + key + " is " + value.dump().substr(0, 80) +
                                        ", should be " + wanted);
  }

  const json& object_;
  const std::string& name_;
  runtime::Status status_;
};

bool is_read(std::string_view key) {
  constexpr std::string_view kRead[] = {
      "do_sample",          "temperature",    "top_p",           "min_p",       "top_k",
      "repetition_penalty", "max_new_tokens", "min_new_tokens",  "num_beams",   "length_penalty",
      "early_stopping",     "bad_words_ids",  "suppress_tokens", "stop_strings"};
  return std::find(std::begin(kRead), std::end(kRead), key) != std::end(kRead);
}

}  // namespace

Result<GenerationConfig> GenerationConfig::from_json(const json& object, const std::string& name) {
  if (!object.is_object())
    return runtime::invalid_argument(name +
                                     ": not a JSON object; the file is damaged, fetch it again");
  GenerationConfig config;
  Reader reader(object, name);
  reader.boolean("do_sample", config.do_sample);
  reader.number("temperature", config.temperature);
  reader.number("top_p", config.top_p);
  reader.number("min_p", config.min_p);
  reader.integer("top_k", config.top_k);
  reader.number("repetition_penalty", config.repetition_penalty);
  reader.integer("max_new_tokens", config.max_new_tokens);
  reader.integer("min_new_tokens", config.min_new_tokens);
  reader.integer("num_beams", config.num_beams);
  reader.number("length_penalty", config.length_penalty);
  reader.early_stopping(config.early_stopping);
  reader.token_lists(config.bad_words);
  reader.texts("stop_strings", config.stop_strings);
  if (!reader.status().ok()) return reader.status();
  if (config.num_beams.value_or(1) > 1 && config.do_sample.value_or(false))
    config.unsupported.push_back("num_beams is " + std::to_string(*config.num_beams) +
                                 " with do_sample");
  for (auto member = object.begin(); member != object.end(); ++member) {
    const std::string& key = member.key();
    const json& value = *member;
    if (is_read(key) || is_neutral_key(key)) continue;
    if (key == kNumReturnSequences && does_nothing(value, 1)) continue;
    const auto& options = missing_options();
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const Missing& one) { return one.key == key; });
    if (option == options.end()) {
      config.unknown.push_back(key);
    } else if (!does_nothing(value, option->neutral)) {
      config.unsupported.push_back(
          key + " is " + value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 80));
    }
  }
  // A file that would be refused on generating is refused on reading, with its name.
  const runtime::Status status =
      config.apply({.max_new_tokens = config.max_new_tokens.value_or(INT32_MAX)}).validate();
  if (!status.ok()) return status.with_context(name);
  return config;
}

Result<GenerationConfig> GenerationConfig::load(const std::filesystem::path& model) {
  std::error_code ignored;
  const std::filesystem::path path =
      (std::filesystem::is_directory(model, ignored) ? model : model.parent_path()) /
      "generation_config.json";
  std::ifstream file(path, std::ios::binary);
  if (!file) return GenerationConfig();
  const std::string text = runtime::rest_of(file);
  if (file.bad()) return runtime::invalid_argument(path.string() + ": cannot be read");
  if (text.size() > kFileBytesMax) return runtime::invalid_argument(path.string() + ": too long");
  return from_json(runtime::parse_json(text), path.string());
}

SamplingParams GenerationConfig::apply(SamplingParams otherwise) const {
  if (do_sample.value_or(false)) {
    otherwise.temperature = temperature.value_or(1.0F);
    otherwise.top_k = top_k.value_or(kTopKOtherwise);
    otherwise.top_p = top_p.value_or(1.0F);
    otherwise.min_p = min_p.value_or(0.0F);
  } else if (do_sample) {
    otherwise.temperature = 0.0F;
  }
  if (repetition_penalty) otherwise.repetition_penalty = *repetition_penalty;
  if (max_new_tokens) otherwise.max_new_tokens = *max_new_tokens;
  if (min_new_tokens) otherwise.min_new_tokens = *min_new_tokens;
  if (num_beams && !do_sample.value_or(false))
    otherwise.beam.width = *num_beams == 1 ? 0 : *num_beams;
  if (length_penalty) otherwise.beam.length_penalty = *length_penalty;
  if (early_stopping) otherwise.beam.early_stopping = *early_stopping;
  otherwise.bad_words.insert(otherwise.bad_words.end(), bad_words.begin(), bad_words.end());
  otherwise.stop_strings.insert(otherwise.stop_strings.end(), stop_strings.begin(),
                                stop_strings.end());
  return otherwise;
}

}  // namespace rl
