#include "rl/app/sampling_options.h"

#include <algorithm>
#include <charconv>

#include "rl/app/prompt_input.h"

namespace rl {
namespace {

runtime::Result<LogitBias> parse_bias(const std::string& text) {
  LogitBias bias;
  const char* const end = text.data() + text.size();
  const auto [equals, id_error] = std::from_chars(text.data(), end, bias.id);
  const bool has_value = id_error == std::errc() && equals != end && *equals == '=';
  if (has_value) {
    const auto [after, error] = std::from_chars(equals + 1, end, bias.bias);
    if (error == std::errc() && after == end) return bias;
  }
  return runtime::invalid_argument("--logit-bias: '" + text +
                                   "' is not a token id and a number such as 13=-2.5");
}

// A word is other tokens at the beginning of a line than behind a space.
runtime::Status add_bad_word(const Tokenizer& tokenizer, const std::string& word,
                             std::vector<std::vector<std::int32_t>>& out) {
  for (const std::string& text : {word, " " + word}) {
    auto ids = tokenizer.encode(text, /*add_special_tokens=*/false);
    if (!ids.ok()) return ids.status().with_context("--bad-word");
    if (!ids->empty() && std::find(out.begin(), out.end(), *ids) == out.end())
      out.push_back(std::move(*ids));
  }
  return {};
}

nlohmann::ordered_json scores_json(const std::vector<std::vector<TokenScore>>& places) {
  auto all = nlohmann::ordered_json::array();
  for (const std::vector<TokenScore>& place : places) {
    auto scores = nlohmann::ordered_json::array();
    for (const TokenScore& score : place)
      scores.push_back({{"id", score.id}, {"logprob", score.logprob}});
    all.push_back(std::move(scores));
  }
  return all;
}

}  // namespace

std::vector<const CLI::Option*> SamplingOptionTexts::add_to(CLI::App& app,
                                                            SamplingParams& sampling) {
  app.add_option("--presence-penalty", sampling.presence_penalty,
                 "subtracted from the logits of tokens that occur in the completion")
      ->capture_default_str();
  app.add_option("--frequency-penalty", sampling.frequency_penalty,
                 "the same, once for each occurrence")
      ->capture_default_str();
  app.add_option("--logit-bias", logit_biases, "added to a token's logit, as ID=BIAS (repeatable)");
  app.add_option(
      "--stop", sampling.stop_strings,
      "a text that ends the completion and is cut off, wherever its tokens begin (repeatable)");
  app.add_flag("--keep-stop", sampling.keep_stop_string, "keep the stop text at the end");
  app.add_option("--bad-word", bad_words,
                 "a text that must not be generated, by its tokens at the beginning of a line and "
                 "after a space (repeatable)");
  app.add_option("--bad-ids", bad_ids,
                 "token ids, as 1,2,3, a sequence that must not be generated (repeatable)");
  const std::vector<const CLI::Option*> beams{
      app.add_option("--beams", sampling.beam.width,
                     "beam search of that width instead of sampling; --n of its hypotheses are "
                     "printed, best first. 0: none")
          ->capture_default_str(),
      app.add_option("--length-penalty", sampling.beam.length_penalty,
                     "of beam search: hypotheses are ranked by log-probability / tokens^this")
          ->capture_default_str(),
      app.add_option("--early-stopping", early_stopping,
                     "of beam search: true (as soon as there are enough hypotheses), false (when "
                     "better ones are unlikely) or never (when impossible)")
          ->check(CLI::IsMember({"true", "false", "never"}))
          ->capture_default_str()};
  app.add_option("--top-logprobs", sampling.top_logprobs,
                 "with --json: the N likeliest tokens at each position")
      ->capture_default_str();
  app.add_flag("--processed-logprobs", sampling.processed_logprobs,
               "with --json: also log-probabilities of the sampled distribution, after penalties, "
               "top-k and the other options");
  app.add_flag("--prompt-logprobs", sampling.prompt_logprobs,
               "with --json: log-probabilities of the prompt's tokens from the second on");
  app.add_option("--prompt-top-logprobs", sampling.prompt_top_logprobs,
                 "with --json: the N likeliest tokens at each of these positions")
      ->capture_default_str();
  return beams;
}

BeamSearchParams::Stop SamplingOptionTexts::stop() const {
  using Stop = BeamSearchParams::Stop;
  return early_stopping == "true"    ? Stop::kFirst
         : early_stopping == "never" ? Stop::kNever
                                     : Stop::kHeuristic;
}

runtime::Status SamplingOptionTexts::apply(const std::optional<Tokenizer>& tokenizer,
                                           SamplingParams& sampling) const {
  for (const std::string& text : logit_biases) {
    auto bias = parse_bias(text);
    if (!bias.ok()) return bias.status();
    sampling.logit_bias.push_back(*bias);
  }
  for (const std::string& text : bad_ids) {
    auto ids = parse_ids(text);
    if (!ids.ok()) return ids.status().with_context("--bad-ids");
    sampling.bad_words.push_back(std::move(*ids));
  }
  if (!tokenizer && !bad_words.empty())
    return runtime::invalid_argument(
        "--bad-word: the model has no tokenizer; --bad-ids takes tokens");
  if (!tokenizer && !sampling.stop_strings.empty())
    return runtime::invalid_argument("--stop: the model has no tokenizer; --stop-id takes a token");
  for (const std::string& word : bad_words) {
    if (runtime::Status status = add_bad_word(*tokenizer, word, sampling.bad_words); !status.ok())
      return status;
  }
  return sampling.validate();
}

nlohmann::ordered_json completion_json(const Completion& completion, const Request& request,
                                       const std::string& text) {
  const SamplingParams& sampling = request.sampling;
  nlohmann::ordered_json line{{"prompt_ids", request.prompt_ids},
                              {"ids", completion.ids},
                              {"text", text},
                              {"logprobs", completion.logprobs}};
  line["finish_reason"] = to_string(completion.finish_reason);
  if (!completion.stop_string.empty()) line["stop_string"] = completion.stop_string;
  if (sampling.beam.width > 0) line["beam_score"] = completion.beam_score;
  if (sampling.top_logprobs > 0) line["top_logprobs"] = scores_json(completion.top_logprobs);
  if (sampling.processed_logprobs) line["processed_logprobs"] = completion.processed_logprobs;
  if (sampling.processed_logprobs && sampling.top_logprobs > 0)
    line["top_processed_logprobs"] = scores_json(completion.top_processed_logprobs);
  if (sampling.prompt_logprobs || sampling.prompt_top_logprobs > 0)
    line["prompt_logprobs"] = completion.prompt_logprobs;
  if (sampling.prompt_top_logprobs > 0)
    line["prompt_top_logprobs"] = scores_json(completion.prompt_top_logprobs);
  return line;
}

}  // namespace rl
