// Ranks that are threads, each with a model of the same units, and backward passes whose gradients
// a test makes up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/comm/thread_links.h"
#include "rl/model/arena_units.h"
#include "rl/model/layer_listener.h"
#include "rl/model/tensor_span.h"
#include "rl/model/transformer.h"
#include "rl/optim/unit_shards.h"
#include "tests/rl/model/large_config.h"

namespace rl::testing {

/// A large_config(), with an output layer that is the embeddings if `tied`.
inline ModelConfig unit_config(bool tied) {
  ModelConfig config = large_config();
  config.tie_word_embeddings = tied;
  return config;
}

struct UnitRank {
  Communicator& communicator;
  Transformer& model;
  std::span<const ArenaUnit> units;
  std::span<const RangeSet> homes;  // by rank
};

/// Small whole numbers, so that sums are exact, another one for each rank, pass and neighbour.
inline float made_up_gradient(int rank, int pass, std::int64_t element) {
  return static_cast<float>((rank + 1) * 7 + pass * 100 + element % 5);
}

/// Writes a rank's made-up gradients where a pass would. It writes what comes behind a layer when
/// the pass goes back to the layer, and the rest at the pass's end. It must be made before what
/// adds the gradients up.
class GradientWriter final : public LayerListener {
 public:
  /// What it does before the unit's gradients, if it is not null.
  using Before = std::function<void(int unit)>;

  GradientWriter(const UnitRank& rank, Before before = nullptr)
      : rank_(rank),
        before_(std::move(before)),
        arena_(elements_of(rank.model.gradient_arena().memory().arena())) {
    rank_.model.tell(*this);
  }
  ~GradientWriter() override { rank_.model.stop_telling(*this); }
  GradientWriter(const GradientWriter&) = delete;
  GradientWriter& operator=(const GradientWriter&) = delete;

  /// The number of this rank's passes that have ended.
  int passes = 0;

  void before_backward(std::int64_t layer) override { write(static_cast<std::size_t>(layer) + 2); }
  void after_pass() override {
    write(1);
    write(0);
    ++passes;
  }

 private:
  // Tells the arena, so that what a pass does not write would be zero; adds to earlier passes.
  void write(std::size_t number) {
    if (before_) before_(static_cast<int>(number));
    GradientArena& gradients = rank_.model.gradient_arena();
    const Parameters& memory = gradients.memory();
    for (const ParameterSpec& spec : memory.specs()) {
      const ArenaRange range{spec.offset, spec.offset + spec.count};
      if (!rank_.units[number].own.contains(range)) continue;
      const bool begins = gradients.sum_of(memory.view(spec))->begin();
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        float& value = arena_[static_cast<std::size_t>(i)];
        const float more = made_up_gradient(rank_.communicator.rank(), passes, i);
        value = begins ? more : value + more;
      }
    }
  }

  const UnitRank rank_;
  const Before before_;
  const std::span<float> arena_;
};

inline void on_unit_ranks(int ranks, bool tied, const std::function<void(const UnitRank&)>& body) {
  const ModelConfig config = unit_config(tied);
  const std::vector<ParameterSpec> specs = parameter_layout(config);
  const std::vector<ArenaUnit> units = arena_units(config, specs);
  const std::vector<RangeSet> homes = homes_of(units, arena_elements(specs), ranks, ranks);
  auto links = make_thread_links(ranks);
  std::vector<std::thread> threads;
  for (std::unique_ptr<Links>& own : links) {
    threads.emplace_back([&] {
      Transformer model(config, Parameters::random(config, 1), {.threads = 1});
      model.enable_gradients();
      Communicator communicator(std::move(own));
      body({communicator, model, units, homes});
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// The values of a rank's home, packed, of an arena whose elements are `value`.
inline std::vector<float> packed_home(const RangeSet& home,
                                      const std::function<float(std::int64_t)>& value) {
  std::vector<float> packed;
  for (const ArenaRange& range : home.ranges())
    for (std::int64_t i = range.begin; i < range.end; ++i) packed.push_back(value(i));
  return packed;
}

}  // namespace rl::testing
