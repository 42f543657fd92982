// Training of every family on drawn numbers of ranks, leaves and levels of ZeRO: the bits of one
// rank. Ranks are threads.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/model/arena_units.h"
#include "rl/model/tensor_cuts.h"
#include "rl/optim/learner.h"
#include "rl/worker/shared_pass.h"
#include "tests/rl/model/fixtures.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 3;
constexpr int kPasses = 2;  // of a leaf

struct Training {
  fs::path model;
  std::uint64_t seed = 0;  // of the data
  int leaves = 1;
  bool adapter = false;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
};

struct Mesh {
  int ranks = 1;
  ZeroLevel zero = ZeroLevel::kNone;
  bool reshard_after_forward = true;
  int tensor = 1;  // ranks that share each pass

  int teams() const { return ranks / tensor; }
};

struct Outcome {
  std::vector<std::vector<float>> trained;  // by rank
  std::vector<double> norms;
  std::int64_t most_weights = -1;  // elements that had memory at most on a rank
};

// Short sequences; now and then there are none.
PackedBatch leaf_of(const Training& run, int step, int leaf, std::int64_t vocabulary) {
  std::seed_seq seeds{run.seed, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(leaf)};
  std::mt19937 random(seeds);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  PackedBatch batch;
  const int sequences = leaf > 0 && draw(0, 9) == 0 ? 0 : draw(1, 3);
  for (int i = 0; i < sequences; ++i) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(draw(2, 9)));
    for (std::int32_t& token : tokens) token = draw(0, static_cast<int>(vocabulary) - 1);
    batch.append(tokens);
  }
  return batch;
}

// A leaf in passes: a sequence each, but for the last.
PackedBatch pass_of(const Training& run, int step, int leaf, int pass, std::int64_t vocabulary) {
  if (leaf >= run.leaves) return {};
  const PackedBatch all = leaf_of(run, step, leaf, vocabulary);
  PackedBatch part;
  for (std::int64_t i = 0; i < all.sequences(); ++i) {
    if (std::min<std::int64_t>(i, kPasses - 1) != pass) continue;
    const auto begin = static_cast<std::size_t>(all.cu_seqlens[static_cast<std::size_t>(i)]);
    const auto end = static_cast<std::size_t>(all.cu_seqlens[static_cast<std::size_t>(i) + 1]);
    part.append(std::span(all.ids).subspan(begin, end - begin));
  }
  return part;
}

std::unique_ptr<Transformer> load(const Training& run) {
  auto config = ModelConfig::load(run.model);
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  auto model = Transformer::load(*config, run.model, 1, {.threads = 1});
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  if (!run.adapter) return std::move(*model);
  auto adapter = LoraAdapter::create(*config, {.rank = 2, .dropout = 0.25}, 7);
  EXPECT_TRUE(adapter.ok()) << adapter.status().to_string();
  EXPECT_TRUE((*model)->add_adapter("trained", std::move(*adapter)).ok());
  EXPECT_TRUE((*model)->use_adapter("trained").ok());
  (*model)->dropout_passes().seed(run.seed);
  return std::move(*model);
}

// A pass of the rank at that position of each team, with what it has.
void learn_batch(Learner& learner, int turn, const PackedBatch& own) {
  const SharedPass shared(learner.model(), turn);
  const auto batch = shared.packed([&] { return own; });
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  if (batch->sequences() == 0) {
    const runtime::Status idle = learner.model().idle_pass(/*with_backward=*/true);
    ASSERT_TRUE(idle.ok()) << idle.to_string();
    return;
  }
  const auto outputs = learner.model().outputs(*batch, {.logprobs = LogprobOptions()});
  ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
  const runtime::Status back =
      shared.backward(*outputs, [](const Outputs& mine) -> runtime::Result<at::Tensor> {
        return mine.logprobs.logprobs_N.sum() * -0.01;
      });
  ASSERT_TRUE(back.ok()) << back.to_string();
  learner.model().end_pass();
}

// Steps of a training, from a checkpoint and into another where there are any.
struct Stretch {
  int first = 0;
  int last = kSteps;
  fs::path from = {};
  fs::path into = {};
};

Outcome train_on(const Training& run, const Mesh& mesh, const Stretch& stretch = {}) {
  Outcome outcome;
  outcome.trained.resize(static_cast<std::size_t>(mesh.ranks));
  auto links = make_thread_links(mesh.ranks);
  std::vector<std::unique_ptr<Communicator>> teams(static_cast<std::size_t>(mesh.ranks));
  for (int team = 0; mesh.tensor > 1 && team < mesh.teams(); ++team) {
    auto of_team = make_thread_links(mesh.tensor);
    for (int position = 0; position < mesh.tensor; ++position)
      teams[static_cast<std::size_t>(position * mesh.teams() + team)] =
          std::make_unique<Communicator>(std::move(of_team[static_cast<std::size_t>(position)]));
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < mesh.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      LearnerOptions options;
      options.optimizer = run.optimizer;
      options.sgd.momentum = 0.9F;
      options.zero = mesh.zero;
      options.reshard_after_forward = mesh.reshard_after_forward;
      Learner learner(load(run),
                      {std::make_unique<Communicator>(std::move(links[at])), std::move(teams[at])},
                      options);
      const std::int64_t vocabulary = learner.model().config().vocab_size;
      if (!stretch.from.empty()) {
        const runtime::Status loaded = learner.load(stretch.from);
        ASSERT_TRUE(loaded.ok()) << loaded.to_string();
      }
      for (int step = stretch.first; step < stretch.last; ++step) {
        for (int first = 0; first < run.leaves; first += mesh.ranks) {
          std::vector<std::uint8_t> adds;
          for (int leaf = first; leaf < first + mesh.ranks; ++leaf)
            adds.push_back(
                leaf < run.leaves && leaf_of(run, step, leaf, vocabulary).sequences() > 0 ? 1 : 0);
          learner.begin_leaf(first + rank);
          const bool last = first + mesh.ranks >= run.leaves;
          for (int turn = 0; turn < mesh.tensor; ++turn) {
            std::vector<std::uint8_t> in_turn(adds.size(), 0);
            for (int of = turn * mesh.teams(); of < (turn + 1) * mesh.teams(); ++of)
              in_turn[static_cast<std::size_t>(of)] = adds[static_cast<std::size_t>(of)];
            for (int pass = 0; pass < kPasses; ++pass) {
              if (pass + 1 == kPasses && learner.sums_in_passes())
                learner.expect_last_pass(in_turn, last && turn + 1 == mesh.tensor);
              learn_batch(learner, turn, pass_of(run, step, first + rank, pass, vocabulary));
            }
          }
          const runtime::Status added = learner.add_round(adds, last);
          ASSERT_TRUE(added.ok()) << added.to_string();
        }
        const auto report = learner.apply(1e-2);
        ASSERT_TRUE(report.ok()) << report.status().to_string();
        if (rank == 0) outcome.norms.push_back(report->grad_norm);
      }
      if (rank == 0) outcome.most_weights = learner.most_weights_there();
      if (!stretch.into.empty()) {
        ASSERT_TRUE(learner.collect_state().ok());
        if (rank == 0) {
          ASSERT_TRUE(learner.save(stretch.into).ok());
        }
      }
      const auto gathered = learner.gathered();
      ASSERT_TRUE(gathered.ok()) << gathered.status().to_string();
      const at::Tensor& arena = learner.model().trained_parameters().arena();
      outcome.trained[at].assign(arena.const_data_ptr<float>(),
                                 arena.const_data_ptr<float>() + arena.numel());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

// At ZeRO-3 no rank has memory for more of the model than two units, on whole pages.
void expect_two_units(const fs::path& folder, const Outcome& outcome) {
  const auto config = ModelConfig::load(folder);
  ASSERT_TRUE(config.ok());
  constexpr std::int64_t kPage = 1024;
  std::vector<std::int64_t> read;
  for (const ArenaUnit& unit : arena_units(*config, parameter_layout(*config)))
    read.push_back(unit.read.elements() + 2 * kPage * std::ssize(unit.read.ranges()));
  std::int64_t most = 0;
  for (std::size_t unit = 1; unit < read.size(); ++unit)
    most = std::max(most, read[unit - 1] + read[unit]);
  EXPECT_GE(outcome.most_weights, 0);
  EXPECT_LE(outcome.most_weights, most);
}

// One of the numbers of ranks that may share a pass.
int drawn_tensor(const fs::path& folder, int ranks, int drawn) {
  const auto config = ModelConfig::load(folder);
  EXPECT_TRUE(config.ok());
  std::vector<int> possible;
  for (int tensor = 1; tensor <= ranks; ++tensor)
    if (ranks % tensor == 0 && check_tensor_ranks(*config, tensor).ok()) possible.push_back(tensor);
  return possible[static_cast<std::size_t>(drawn) % possible.size()];
}

// Returns how many ranks shared each pass.
int expect_same_bits(const fs::path& folder, std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  Training run{.model = folder, .seed = seed, .leaves = draw(3, 8)};
  run.adapter = draw(0, 2) == 0;
  run.optimizer = draw(0, 2) == 0 ? OptimizerKind::kSgd : OptimizerKind::kAdamW;
  SCOPED_TRACE(folder.filename().string() + ", seed " + std::to_string(seed) + ", " +
               std::to_string(run.leaves) + " leaves" + (run.adapter ? ", an adapter" : ""));
  const Outcome one = train_on(run, {});
  EXPECT_EQ(one.norms.size(), static_cast<std::size_t>(kSteps));
  EXPECT_GT(one.norms.front(), 0.0);
  Mesh several{.ranks = draw(2, 8),
               .zero = static_cast<ZeroLevel>(draw(0, 3)),
               .reshard_after_forward = draw(0, 2) > 0};
  if (!run.adapter) several.tensor = drawn_tensor(folder, several.ranks, draw(0, 3));
  SCOPED_TRACE(std::to_string(several.ranks) + " ranks, ZeRO " +
               std::to_string(static_cast<int>(several.zero)) + ", tensor " +
               std::to_string(several.tensor));
  const Outcome all = train_on(run, several);
  EXPECT_EQ(all.norms, one.norms);
  if (several.zero == ZeroLevel::kWeights && several.reshard_after_forward)
    expect_two_units(folder, all);
  for (const std::vector<float>& trained : all.trained) EXPECT_TRUE(trained == one.trained[0]);
  return several.tensor;
}

TEST(AnyMesh, ACheckpointOfOneGoesOnWithAnother) {
  const support::TemporaryFolder folder;
  const auto cases = testing::model_cases();
  ASSERT_FALSE(cases.empty());
  int checked = 0;
  for (const fs::path& model : cases) {
    const std::string name = model.filename().string();
    if (name != "qwen2" && name != "mixtral" && name != "gpt2") continue;
    for (const bool adapter : {false, true}) {
      SCOPED_TRACE(name + (adapter ? ", an adapter" : ""));
      const Training run{.model = model, .seed = 3, .leaves = 4, .adapter = adapter};
      const Outcome whole = train_on(run, {});
      const fs::path saved = folder.file(name + (adapter ? "-adapter" : ""));
      (void)train_on(run, {.ranks = 3, .zero = ZeroLevel::kWeights}, {.last = 2, .into = saved});
      for (const Mesh& mesh : {Mesh{1, ZeroLevel::kNone}, Mesh{2, ZeroLevel::kMoments},
                               Mesh{4, ZeroLevel::kGradients}, Mesh{2, ZeroLevel::kWeights}}) {
        const Outcome rest = train_on(run, mesh, {.first = 2, .from = saved});
        EXPECT_EQ(rest.norms.back(), whole.norms.back());
        EXPECT_TRUE(rest.trained[0] == whole.trained[0])
            << mesh.ranks << " ranks, ZeRO " << static_cast<int>(mesh.zero);
      }
      ++checked;
    }
  }
  EXPECT_EQ(checked, 6);
}

TEST(AnyMesh, TrainsEveryFamilyToTheSameBits) {
  std::uint64_t seed = 0;
  int families = 0;
  int shared = 0;
  for (const fs::path& folder : testing::model_cases()) {
    ++families;
    for (int time = 0; time < 3; ++time)
      if (expect_same_bits(folder, ++seed) > 1) ++shared;
  }
  EXPECT_GT(shared, 15);
  EXPECT_GT(families, 20);
}

}  // namespace
}  // namespace rl
