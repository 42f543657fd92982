// The share of the wait for a link that computing hides, where weights are gathered unit by unit
// (ZeRO-3): two ranks in two networks.
//
//   bench_gather [--model MODEL] [--delay-ms 5] [--tokens 512] [--passes 4] [--steps 3] [--json]
//
// Each rank has one thread, and TCP between two network namespaces, whose packets are on their way
// for the delay. Without MODEL (a folder or file, as SmolLM2) the model is one of 30 million
// parameters that the program makes. Every step of a rank is some passes of N tokens each, forward
// and backward, or forward alone. Each is measured as it is, and with links that wait for each
// transfer at once: that is all the waiting there is to hide. Needs root, for the namespaces.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/support/figures.h"
#include "bench/support/network_pair.h"
#include "bench/support/options.h"
#include "rl/comm/gloo_communicator.h"
#include "rl/model/model_config.h"
#include "rl/optim/learner.h"
#include "rl/worker/gradient_rounds.h"
#include "rl/worker/passes.h"

namespace {

using namespace bench;
using nlohmann::ordered_json;
using rl::Exchange;
using rl::Incoming;
using rl::Links;
using rl::Outgoing;
using runtime::Status;

// Times what a rank waits for; `at_once`: for each transfer as soon as it has begun.
class TimedLinks final : public Links {
 public:
  TimedLinks(std::unique_ptr<Links> links, const bool& at_once)
      : links_(std::move(links)), at_once_(at_once) {}

  int rank() const override { return links_->rank(); }
  int size() const override { return links_->size(); }
  std::unique_ptr<Exchange> start(std::span<const Outgoing> sent,
                                  std::span<const Incoming> received,
                                  std::uint64_t operation) override {
    auto exchange = std::make_unique<Timed>(links_->start(sent, received, operation), waited_s_);
    if (at_once_) exchange->wait_now();
    return exchange;
  }
  void progress() override { links_->progress(); }
  void abort(const Status& why) override { links_->abort(why); }

  double take_waited_s() { return std::exchange(waited_s_, 0.0); }

 private:
  class Timed final : public Exchange {
   public:
    Timed(std::unique_ptr<Exchange> exchange, double& waited_s)
        : exchange_(std::move(exchange)), waited_s_(waited_s) {}
    void wait_now() {
      if (is_over_) return;
      const auto begin = Clock::now();
      status_ = exchange_->wait();
      waited_s_ += seconds_since(begin);
      is_over_ = true;
    }
    Status wait() override {
      wait_now();
      return status_;
    }
    bool is_done() const override { return is_over_ || exchange_->is_done(); }

   private:
    std::unique_ptr<Exchange> exchange_;
    double& waited_s_;
    Status status_;
    bool is_over_ = false;
  };

  std::unique_ptr<Links> links_;
  const bool& at_once_;
  double waited_s_ = 0;
};

struct Options {
  std::string model;
  double delay_ms = 5;
  std::size_t tokens = 512, passes = 4, steps = 3;
  bool json = false;
};

rl::ModelConfig small_model() {
  rl::ModelConfig config;
  config.family = "llama";
  config.hidden_size = 512;
  config.layers = 8;
  config.heads = 8;
  config.kv_heads = 4;
  config.head_dim = 64;
  config.intermediate_size = 1536;
  config.vocab_size = 8192;
  config.max_position_embeddings = 4096;
  config.tie_word_embeddings = true;
  return config;
}

template <class T>
T taken(runtime::Result<T> result) {
  if (!result.ok()) fail(result.status().to_string());
  return std::move(*result);
}

void require(const Status& status) {
  if (!status.ok()) fail(status.to_string());
}

std::unique_ptr<rl::Transformer> make_model(const Options& options) {
  if (!options.model.empty()) {
    const auto config = taken(rl::ModelConfig::load(options.model));
    return taken(rl::Transformer::load(config, options.model, 1, {.threads = 1}));
  }
  const rl::ModelConfig config = small_model();
  return std::make_unique<rl::Transformer>(config, rl::Parameters::random(config, 1),
                                           rl::TransformerOptions{.threads = 1});
}

struct Seconds {
  std::vector<double> waited, step;  // of each step but the first
};

// What one rank does, in its own network.
class Rank {
 public:
  Rank(const Options& options, TimedLinks& timed, std::unique_ptr<rl::Communicator> communicator)
      : options_(options),
        timed_(timed),
        micro_batches_(cut(options.passes)),
        learner_(make_model(options), rl::TrainingRanks(std::move(communicator)), sharded()) {}

  Seconds score() {
    return steps([&] {
      const at::NoGradGuard no_graph;
      const rl::Passes runner(learner_.model(), {});
      require(runner.score(micro_batches_, input(),
                           [](const rl::Outputs&, const rl::MicroBatch&, const rl::PackedBatch&) {
                             return Status();
                           }));
    });
  }

  Seconds train() {
    const auto passes = [&] {
      rl::Metrics metrics;
      const rl::Passes runner(learner_.model(), {});
      require(rl::learn_in_rounds(learner_, micro_batches_, {}, input().wanted,
                                  [&](std::span<const rl::MicroBatch> of_turn, int turn) {
                                    return runner.learn(
                                        of_turn, input(),
                                        [](const rl::Outputs& outputs, const rl::MicroBatch&,
                                           const rl::PackedBatch&,
                                           rl::Metrics&) -> runtime::Result<at::Tensor> {
                                          return outputs.logprobs.logprobs_N.mean() * -1.0;
                                        },
                                        metrics, turn);
                                  }));
    };
    return steps(passes, [&] { (void)taken(learner_.apply(1e-5)); });
  }

 private:
  static rl::LearnerOptions sharded() {
    rl::LearnerOptions options;
    options.zero = rl::ZeroLevel::kWeights;
    return options;
  }

  static std::vector<rl::MicroBatch> cut(std::size_t passes) {
    std::vector<rl::MicroBatch> cut;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(passes); ++i) cut.push_back({i, i + 1});
    return cut;
  }

  rl::PassInput input() const {
    return {.pack =
                [this](const rl::MicroBatch&) {
                  std::vector<std::int32_t> ids;
                  const auto vocabulary = learner_.model().config().vocab_size;
                  for (std::size_t i = 0; i < options_.tokens; ++i)
                    ids.push_back(static_cast<std::int32_t>(
                        (i * 7919 + static_cast<std::size_t>(timed_.rank())) %
                        static_cast<std::size_t>(vocabulary)));
                  rl::PackedBatch packed;
                  packed.append(ids);
                  return packed;
                },
            .wanted = {.logprobs = rl::LogprobOptions()}};
  }

  // What ends a step counts for nothing.
  Seconds steps(
      const std::function<void()>& passes, const std::function<void()>& end = [] {}) {
    Seconds seconds;
    for (std::size_t step = 0; step <= options_.steps; ++step) {
      timed_.take_waited_s();
      const auto begin = Clock::now();
      passes();
      if (step > 0) {
        seconds.step.push_back(seconds_since(begin));
        seconds.waited.push_back(timed_.take_waited_s());
      }
      end();
    }
    return seconds;
  }

  const Options& options_;
  TimedLinks& timed_;
  const std::vector<rl::MicroBatch> micro_batches_;
  rl::Learner learner_;
};

void add_figures(const std::string& name, const std::vector<Seconds>& plain,
                 const std::vector<Seconds>& at_once, ordered_json& figures) {
  double waited = 0, to_wait = 0, step = 0;
  for (std::size_t rank = 0; rank < plain.size(); ++rank) {
    waited += median(plain[rank].waited);
    to_wait += median(at_once[rank].waited);
    step += median(plain[rank].step);
  }
  const auto ranks = static_cast<double>(plain.size());
  figures[name + "_step_s"] = step / ranks;
  figures[name + "_waited_s"] = waited / ranks;
  figures[name + "_waited_at_once_s"] = to_wait / ranks;
  figures[name + "_hidden"] = 1.0 - waited / to_wait;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  read_options(argc, argv,
               {{"--model", &options.model},
                {"--delay-ms", &options.delay_ms},
                {"--tokens", &options.tokens},
                {"--passes", &options.passes},
                {"--steps", &options.steps},
                {"--json", &options.json}});
  const auto delay = std::chrono::microseconds(static_cast<std::int64_t>(options.delay_ms * 1e3));
  const std::unique_ptr<NetworkPair> networks = NetworkPair::create(delay);
  if (!networks) fail("no second network here: it takes root, `ip netns` and /dev/net/tun");
  const std::shared_ptr<rl::Rendezvous> meeting = rl::make_local_rendezvous();
  constexpr int kRanks = 2;
  std::vector<Seconds> scored(kRanks), scored_at_once(kRanks), trained(kRanks),
      trained_at_once(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      if (rank == 1) networks->enter();  // this thread, and those that it starts
      auto links = taken(
          rl::make_gloo_links(meeting, {.rank = rank,
                                        .size = kRanks,
                                        .host = rank == 0 ? networks->near() : networks->far(),
                                        .shares_memory = false}));
      bool at_once = false;
      auto timed = std::make_unique<TimedLinks>(std::move(links), at_once);
      TimedLinks& waits = *timed;
      Rank one(options, waits, std::make_unique<rl::Communicator>(std::move(timed)));
      const auto at = static_cast<std::size_t>(rank);
      scored[at] = one.score();
      trained[at] = one.train();
      at_once = true;
      scored_at_once[at] = one.score();
      trained_at_once[at] = one.train();
    });
  }
  for (std::thread& thread : threads) thread.join();
  ordered_json figures;
  figures["delay_ms"] = options.delay_ms;
  add_figures("score", scored, scored_at_once, figures);
  add_figures("train", trained, trained_at_once, figures);
  print_figures(figures, options.json);
  return 0;
}
