// Ranks that are threads and share the passes of one small model, and what one rank alone learns
// from the same rows.
#pragma once

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/comm/communicator.h"
#include "rl/comm/pipeline_links.h"
#include "rl/comm/thread_links.h"
#include "rl/model/guarded.h"
#include "rl/model/pass_parts.h"
#include "rl/model/pass_team.h"
#include "rl/model/tensor_span.h"
#include "rl/model/transformer.h"
#include "rl/worker/passes.h"

namespace rl::testing {

inline ModelConfig team_config(bool tied = false) {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 32;
  config.layers = 3;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.intermediate_size = 64;
  config.vocab_size = 48;
  config.max_position_embeddings = 64;
  config.tie_word_embeddings = tied;
  return config;
}

inline std::unique_ptr<Transformer> team_model(const ModelConfig& config) {
  return std::make_unique<Transformer>(config, Parameters::random(config, 1),
                                       TransformerOptions{.threads = 1});
}

/// Row i is a sequence of 4 + i tokens, of which the last three are targets.
inline PackedBatch packed_rows(const MicroBatch& rows) {
  PackedBatch packed;
  for (std::int64_t row = rows.first; row < rows.last; ++row) {
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < 4 + row; ++i)
      ids.push_back(static_cast<std::int32_t>((7 * row + i * i) % 48));
    packed.append(ids, 1 + row);
  }
  return packed;
}

/// The negative log-likelihood of the targets, as "loss"; of rows from `unlearned` on there is
/// none.
inline PassLoss likelihood_loss(std::int64_t unlearned = 1'000) {
  return [unlearned](const Outputs& outputs, const MicroBatch& rows, const PackedBatch&,
                     Metrics& metrics) -> runtime::Result<at::Tensor> {
    if (rows.first >= unlearned) return at::Tensor();
    const at::Tensor loss = -outputs.logprobs.logprobs_N.sum();
    metrics["loss"] += loss.item<double>();
    return loss;
  };
}

struct Learned {
  at::Tensor gradient;  // of the arena
  Metrics metrics;
};

/// One rank alone, one pass after the other.
inline Learned learned_alone(const ModelConfig& config, const std::vector<MicroBatch>& passes,
                             const PassLoss& loss) {
  const std::unique_ptr<Transformer> model = team_model(config);
  model->enable_gradients();
  Learned learned;
  for (const MicroBatch& rows : passes) {
    if (rows.idle()) continue;
    const PackedBatch packed = packed_rows(rows);
    const auto outputs = model->outputs(packed, {.logprobs = LogprobOptions()});
    EXPECT_TRUE(outputs.ok()) << outputs.status().to_string();
    const auto value = loss(*outputs, rows, packed, learned.metrics);
    EXPECT_TRUE(value.ok()) << value.status().to_string();
    if (value->defined()) value->backward();
  }
  learned.gradient = model->gradients().arena().clone();
  return learned;
}

struct TeamRank {
  const PassTeam& team;
  Transformer& model;
  RangeSet differentiated;  // what it computes the gradient of
};

/// Whether the rank has the bits of `expected` wherever it computes the gradient.
inline void expect_part_of(const TeamRank& mine, const at::Tensor& expected) {
  const at::Tensor gradient = mine.model.gradients().arena();
  std::int64_t compared = 0, others = 0;
  for (const ArenaRange& range : mine.differentiated.ranges()) {
    for (std::int64_t i = range.begin; i < range.end; ++i, ++compared) {
      const auto at = static_cast<std::size_t>(i);
      others += elements_of(gradient)[at] == elements_of(expected)[at] ? 0 : 1;
    }
  }
  EXPECT_GT(compared, 0);
  EXPECT_EQ(others, 0) << "of rank " << mine.team.rank();
}

/// What the body has returned on each rank, whose links go when it has.
inline std::vector<runtime::Status> on_team(
    const PassSharing& sharing, const std::function<runtime::Status(const TeamRank&)>& body,
    const ModelConfig& config = team_config()) {
  const auto size = static_cast<int>(sharing.team());
  auto all = make_thread_links(size), stages = make_thread_links(size),
       losses = make_thread_links(size);
  const PassParts parts = pass_parts(config, parameter_layout(config), sharing);
  std::vector<runtime::Status> ended(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ended.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Communicator communicator(std::move(all[rank]));
      PipelineLinks links;
      links.stages = std::make_unique<PeerMessages>(std::move(stages[rank]));
      links.losses = std::make_unique<PeerMessages>(std::move(losses[rank]));
      const PassTeam team = sharing.stages == 1
                                ? PassTeam(communicator, sharing.cut)
                                : PassTeam(communicator, static_cast<int>(sharing.stages),
                                           static_cast<int>(sharing.chunks), nullptr, &links);
      const std::unique_ptr<Transformer> model = team_model(config);
      ended[rank] = model->share_passes(team);
      if (!ended[rank].ok()) return;
      model->enable_gradients();
      ended[rank] = body({team, *model, parts.differentiated[rank]});
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ended;
}

inline void expect_all_ok(const std::vector<runtime::Status>& ended) {
  for (std::size_t rank = 0; rank < ended.size(); ++rank)
    EXPECT_TRUE(ended[rank].ok()) << "rank " << rank << ": " << ended[rank].to_string();
}

}  // namespace rl::testing
