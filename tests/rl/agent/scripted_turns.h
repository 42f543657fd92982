// A model that follows a script.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rl/agent/turn_source.h"
#include "rl/data/toy.h"
#include "rl/tokenizer/tokenizer.h"

namespace rl {

// Says what the script says to the text so far; turns finish one a step, in order or backwards.
class ScriptedTurns : public TurnSource {
 public:
  using Script = std::function<std::string(const std::string& text, std::int64_t sample)>;
  ScriptedTurns(Tokenizer tokenizer, Script script, bool backwards)
      : tokenizer_(std::move(tokenizer)), script_(std::move(script)), backwards_(backwards) {}

  RequestId submit(Request request) override {
    requests.push_back(request);
    open_.emplace_back(requests.size() - 1, std::move(request));
    return requests.size() - 1;
  }
  runtime::Status step() override {
    if (open_.empty()) return {};
    const auto [id, request] = backwards_ ? open_.back() : open_.front();
    backwards_ ? open_.pop_back() : open_.pop_front();
    for (std::int64_t sample = 0; sample < request.n; ++sample) {
      Completion& completion = finished_.emplace_back();
      completion.request = id;
      completion.sample = sample;
      completion.ids =
          *tokenizer_.encode(script_(tokenizer_.decode(request.prompt_ids, false), sample), false);
      completion.ids.push_back(kToyEndId);
      completion.finish_reason = FinishReason::kStop;
      if (static_cast<std::int64_t>(completion.ids.size()) > request.sampling.max_new_tokens) {
        completion.ids.resize(static_cast<std::size_t>(request.sampling.max_new_tokens));
        completion.finish_reason = FinishReason::kLength;
      }
      completion.logprobs.assign(completion.ids.size(), -0.5F - static_cast<float>(id));
      completion.length_max = 100;
    }
    return {};
  }
  std::vector<Completion> take_finished() override { return std::exchange(finished_, {}); }
  bool idle() const override { return open_.empty(); }

  std::vector<Request> requests;

 private:
  Tokenizer tokenizer_;
  Script script_;
  bool backwards_;
  std::deque<std::pair<RequestId, Request>> open_;
  std::vector<Completion> finished_;
};

}  // namespace rl
