// A trainer and a generator that share nothing but a name.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "rl/actor/weight_channel.h"
#include "runtime/runtime.h"
#include "tests/rl/rollout/tiny_model.h"

namespace rl::testing {

/// Publishes the weights that tiny_model(seed) has.
class Learner {
 public:
  static constexpr const char* kName = "Learner";
  explicit Learner(runtime::Runtime& runtime) : publisher_(runtime, "policy") {}

  runtime::Status publish(std::uint64_t version, std::uint64_t seed) {
    return publisher_.publish(*tiny_model(seed), version);
  }
  runtime::Status publish_another_model(std::uint64_t version) {
    ModelConfig config = tiny_config();
    config.layers = 1;
    return publisher_.publish(Transformer(config, Parameters::random(config, 1)), version);
  }

 private:
  WeightPublisher publisher_;
};

struct Tokens {
  std::vector<std::int32_t> ids;
  std::vector<float> logprobs;
  std::vector<std::uint64_t> versions;  // of each

  auto fields() { return std::tie(ids, logprobs, versions); }
};

/// Generates with its own model, which begins as tiny_model(1).
class Generator {
 public:
  static constexpr const char* kName = "Generator";
  explicit Generator(runtime::Runtime& runtime)
      : model_(tiny_model(1)),
        receiver_(runtime, "policy", *model_),
        engine_(std::move(*Engine::create(*model_))) {}

  runtime::Status wait(std::uint64_t version, std::int64_t milliseconds) {
    const runtime::Status arrived =
        receiver_.wait(version, std::chrono::milliseconds(milliseconds));
    if (arrived.ok()) engine_->weights_changed(receiver_.version());
    return arrived;
  }

  /// One request of `tokens` tokens. After `pause_after` of them it waits until `version` has
  /// arrived, as if it took long over its steps.
  runtime::Result<Tokens> generate(std::int64_t tokens, std::int64_t pause_after,
                                   std::uint64_t version, std::int32_t policy) {
    Request request{.prompt_ids = {5, 6, 7}};
    request.sampling = {.max_new_tokens = tokens, .seed = 9, .ignore_eos = true};
    engine_->submit(request);
    runtime::Status status;
    for (std::int64_t step = 0; status.ok() && !engine_->idle(); ++step) {
      status = engine_->step();
      while (status.ok() && step == pause_after && receiver_.version() < version)
        status = take_weights(receiver_, *engine_, static_cast<OnNewWeights>(policy));
    }
    if (!status.ok()) return status;
    const std::vector<Completion> done = engine_->take_finished();
    Tokens out{.ids = done.at(0).ids, .logprobs = done.at(0).logprobs, .versions = {}};
    for (std::size_t i = 0; i < out.ids.size(); ++i)
      out.versions.push_back(done.at(0).weight_version(i));
    return out;
  }

 private:
  std::unique_ptr<Transformer> model_;
  WeightReceiver receiver_;
  std::unique_ptr<Engine> engine_;
};

inline void register_test_actors(runtime::Runtime& runtime) {
  runtime.register_actor<Learner>("Learner", &Learner::publish, &Learner::publish_another_model);
  runtime.register_actor<Generator>("Generator", &Generator::wait, &Generator::generate);
}

}  // namespace rl::testing
