// Supervised steps without the runtime: workers are objects, ranks are threads.
#include "rl/worker/sft_worker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "rl/comm/gloo_communicator.h"
#include "rl/comm/thread_links.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

class SftWorkerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("starling-sft-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ASSERT_TRUE(
        make_toy_model(folder_, {.layers = 2, .hidden_size = 32, .intermediate_size = 64}).ok());
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  // Momentum is the gradient, with SGD and no clipping.
  static SftWorkerOptions options() {
    SftWorkerOptions options;
    options.model = folder_;
    options.learner.optimizer = OptimizerKind::kSgd;
    options.learner.sgd.momentum = 0.9F;
    options.learner.grad_norm_max = 0.0;
    return options;
  }

  static std::unique_ptr<SftWorker> make(
      const SftWorkerOptions& options,
      std::unique_ptr<Communicator> communicator = make_single_communicator()) {
    auto worker = SftWorker::create(options, std::move(communicator));
    EXPECT_TRUE(worker.ok()) << worker.status().to_string();
    return std::move(*worker);
  }

  // Rows of different lengths with two learned stretches each, as two turns have; row i is the same
  // in every batch.
  static SupervisedBatch batch(std::int64_t first, std::int64_t last) {
    SupervisedBatch made;
    for (std::int64_t row = first; row < last; ++row) {
      LearnedTokens tokens;
      const std::int64_t size = 6 + 3 * (row % 4);
      for (std::int64_t i = 0; i < size; ++i) {
        tokens.ids.push_back(static_cast<std::int32_t>(4 + (row * 7 + i * i) % 26));
        tokens.learned.push_back(i == 2 || i == 3 || i >= size - 2 ? 1 : 0);
      }
      made.append(tokens);
    }
    return made;
  }

  struct StepResult {
    std::vector<float> gradient;
    std::vector<float> moved;  // by which the weights are others than before
    Metrics metrics;
  };
  // The rows of each rank.
  static std::vector<SupervisedBatch> parts(std::int64_t rows, int ranks) {
    std::vector<SupervisedBatch> parts;
    for (int rank = 0; rank < ranks; ++rank)
      parts.push_back(batch(rows * rank / ranks, rows * (rank + 1) / ranks));
    return parts;
  }
  static std::vector<std::vector<MicroBatch>> cut(const std::vector<SupervisedBatch>& batches,
                                                  const MicroBatchLimits& limits) {
    std::vector<std::vector<std::int64_t>> lengths;
    for (const SupervisedBatch& batch : batches) lengths.push_back(sequence_lengths(batch));
    return plan_rounds(lengths, std::vector(lengths.size(), limits));
  }
  static StepResult step(std::int64_t rows, int ranks, const SftWorkerOptions& options,
                         const MicroBatchLimits& limits = {}) {
    const std::shared_ptr<Rendezvous> rendezvous = make_local_rendezvous();
    const std::int64_t total = batch(0, rows).learned_tokens();
    const std::vector<SupervisedBatch> batches = parts(rows, ranks);
    const auto micro_batches = cut(batches, limits);
    StepResult result;
    std::vector<Metrics> metrics(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        std::unique_ptr<Communicator> group = make_single_communicator();
        if (ranks > 1)
          group = std::move(*make_gloo_communicator(
              rendezvous, {.rank = rank, .size = ranks, .host = "127.0.0.1"}));
        const auto worker = make(options, std::move(group));
        const at::Tensor before = worker->learner().model().parameters().arena().clone();
        const auto at = static_cast<std::size_t>(rank);
        const auto report = worker->update(batches[at], {total, 1e-2, micro_batches[at]});
        ASSERT_TRUE(report.ok()) << report.status().to_string();
        metrics[static_cast<std::size_t>(rank)] = *report;
        if (rank != 0) return;
        const std::vector<OptimizerState> state = worker->learner().optimizer_state();
        result.gradient.assign(state.front().values.begin(), state.front().values.end());
        const at::Tensor moved = worker->learner().model().parameters().arena().sub(before);
        result.moved.assign(moved.const_data_ptr<float>(),
                            moved.const_data_ptr<float>() + moved.numel());
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Metrics& part : metrics) {
      for (const auto& [name, value] : part) result.metrics[name] += value;
    }
    return result;
  }

  // The model that a step writes, of two leaves of two passes each, by a worker alone or by the two
  // of a team.
  static std::string model_after(SftWorkerOptions options, const PassSharing& sharing,
                                 const fs::path& folder) {
    constexpr std::int64_t kLeaf = 40;  // rows, whose targets are several ranks' to compute
    options.learner.sharing = sharing;
    const auto ranks = static_cast<int>(sharing.team());
    auto all = make_thread_links(ranks), team = make_thread_links(ranks);
    const SupervisedBatch whole = batch(0, 2 * kLeaf);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        const auto at = static_cast<std::size_t>(rank);
        TrainingRanks group(std::make_unique<Communicator>(std::move(all[at])));
        if (ranks > 1) group.team = std::make_unique<Communicator>(std::move(team[at]));
        auto worker = SftWorker::create(options, std::move(group));
        ASSERT_TRUE(worker.ok()) << worker.status().to_string();
        SupervisedPlan plan{.tokens_total = whole.learned_tokens(), .learning_rate = 1e-2};
        for (int leaf = rank; leaf < 2; leaf += ranks) {
          plan.rounds.push_back({.leaf = leaf, .passes = 2, .adds = {}});
          plan.rounds.back().adds.assign(static_cast<std::size_t>(ranks), 1);
          const std::int64_t first = ranks == 1 ? leaf * kLeaf : 0;
          plan.micro_batches.push_back({first, first + 30});
          plan.micro_batches.push_back({first + 30, first + kLeaf});
        }
        const SupervisedBatch own = ranks == 1 ? whole : batch(rank * kLeaf, (rank + 1) * kLeaf);
        const auto report = (*worker)->update(own, plan);
        ASSERT_TRUE(report.ok()) << report.status().to_string();
        EXPECT_GT(report->at("train/kl"), 0.0);
        ASSERT_TRUE((*worker)->collect_state().ok());
        if (rank > 0) return;
        const auto saved = (*worker)->save(folder);
        ASSERT_TRUE(saved.ok()) << saved.status().to_string();
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::ifstream file(folder / kModelFolder / "model.safetensors", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0.0;
    double size = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(double{a[i]} - double{b[i]}, 2);
      size += std::pow(double{a[i]}, 2);
    }
    EXPECT_GT(size, 0.0);
    return std::sqrt(difference / size);
  }

  static inline fs::path folder_;
};

TEST_F(SftWorkerTest, TheGradientDependsOnNeitherMicroBatchesNorWorkers) {
  const StepResult whole = step(7, 1, options());
  for (const auto& [ranks, limits] : {std::pair(1, MicroBatchLimits{.samples_max = 1}),
                                      {1, {.tokens_max = 20}},
                                      {2, {}},
                                      {3, {.samples_max = 2}}}) {
    const StepResult other = step(7, ranks, options(), limits);
    EXPECT_LE(distance(whole.gradient, other.gradient), 1e-6)
        << ranks << " workers, " << limits.samples_max << " rows, " << limits.tokens_max
        << " tokens";
    EXPECT_NEAR(whole.metrics.at("train/loss"), other.metrics.at("train/loss"), 1e-6);
    EXPECT_NEAR(whole.metrics.at("train/grad_norm"), other.metrics.at("train/grad_norm"), 1e-5);
  }
}

// What is clipped is the gradient of all workers' rows together, and what is told is its norm
// before.
TEST_F(SftWorkerTest, AGradientAboveTheLimitIsScaledDownToIt) {
  for (const int ranks : {1, 2}) {
    const StepResult whole = step(7, ranks, options());
    const double norm = whole.metrics.at("train/grad_norm");
    for (const double share : {0.25, 4.0}) {
      SCOPED_TRACE(std::to_string(ranks) + " workers, a limit of " + std::to_string(share) +
                   " norms");
      SftWorkerOptions limited = options();
      limited.learner.grad_norm_max = share * norm;
      const StepResult clipped = step(7, ranks, limited);
      const auto scaled = [&](std::vector<float> values) {
        for (float& value : values) value *= static_cast<float>(std::min(1.0, share));
        return values;
      };
      EXPECT_NEAR(clipped.metrics.at("train/grad_norm"), norm, 1e-6 * norm);
      EXPECT_LE(distance(scaled(whole.gradient), clipped.gradient), 1e-5);
      EXPECT_LE(distance(scaled(whole.moved), clipped.moved), 1e-3);  // weights are rounded
    }
  }
}

// Packing: a row's loss is the same to the bit whatever lies next to it; nothing is padded.
TEST_F(SftWorkerTest, PackedRowsDoNotSeeEachOther) {
  const auto worker = make(options());
  double apart = 0.0;
  for (std::int64_t row = 0; row < 5; ++row) apart += worker->evaluate(batch(row, row + 1))->loss;
  const auto together = worker->evaluate(batch(0, 5));
  ASSERT_TRUE(together.ok());
  EXPECT_NEAR(together->loss, apart, 1e-4);
  EXPECT_EQ(together->tokens, 5 * 4);
  const PackedBatch packed = pack_supervised(batch(0, 5), {0, 5});
  EXPECT_EQ(packed.tokens(), 6 + 9 + 12 + 15 + 6);
  EXPECT_EQ(packed.targets.size(), 20u);
}

// Masking: what is not learned is read and not predicted. The sum over the stretches of two turns
// is that of each turn alone.
TEST_F(SftWorkerTest, OnlyLearnedTokensCountAndTurnsAddUp) {
  const auto worker = make(options());
  const SupervisedBatch both = batch(3, 4);
  SupervisedBatch first = both;
  SupervisedBatch last = both;
  for (std::size_t i = 0; i < both.learned.values.size(); ++i)
    (i < 5 ? last : first).learned.values[i] = 0;
  const double sum = worker->evaluate(first)->loss + worker->evaluate(last)->loss;
  EXPECT_NEAR(worker->evaluate(both)->loss, sum, 1e-5);
  // The first turn does not know what follows it; the last one does know what came before.
  SupervisedBatch changed = first;
  changed.ids.values.back() = 5 + changed.ids.values.back() % 20;
  EXPECT_EQ(worker->evaluate(changed)->loss, worker->evaluate(first)->loss);
  changed = last;
  changed.ids.values[0] = 5 + changed.ids.values[0] % 20;
  EXPECT_NE(worker->evaluate(changed)->loss, worker->evaluate(last)->loss);
}

TEST_F(SftWorkerTest, ARowWithNothingToLearnChangesNothing) {
  SupervisedBatch extended = batch(0, 2);
  SupervisedBatch idle = batch(2, 3);
  std::fill(idle.learned.values.begin(), idle.learned.values.end(), 0);
  extended.append({.ids = {idle.ids.values.begin(), idle.ids.values.end()},
                   .learned = {idle.learned.values.begin(), idle.learned.values.end()}});
  const auto worker = make(options());
  EXPECT_EQ(worker->evaluate(extended)->tokens, 8);
  // One pass has no target at all.
  const auto single = cut({extended}, {.samples_max = 1}).front();
  const auto learned = make(options())->update(extended, {8, 1e-2, single});
  ASSERT_TRUE(learned.ok()) << learned.status().to_string();
  EXPECT_NEAR(learned->at("train/loss"),
              make(options())->update(batch(0, 2), {8, 1e-2})->at("train/loss"), 1e-6);
}

// Distillation: with weight 0 it is the step without a teacher, and with the teacher's own weights
// there is nothing to learn from it.
TEST_F(SftWorkerTest, ATeacherOfWeightZeroChangesNothing) {
  SftWorkerOptions distilled = options();
  distilled.teacher = TeacherOptions{.model = folder_, .loss = {.temperature = 2.0, .weight = 0.0}};
  const StepResult with = step(5, 1, distilled);
  const StepResult without = step(5, 1, options());
  EXPECT_LE(distance(without.gradient, with.gradient), 1e-5);
  EXPECT_NEAR(with.metrics.at("train/loss"), without.metrics.at("train/loss"), 1e-5);
  EXPECT_NEAR(with.metrics.at("train/kl"), 0.0, 1e-6);
  distilled.teacher->loss.weight = 1.0;
  EXPECT_LT(step(5, 1, distilled).metrics.at("train/grad_norm"), 1e-4);
}

TEST_F(SftWorkerTest, TheDistilledGradientDependsOnNeitherMicroBatchesNorWorkers) {
  const fs::path teacher = folder_ / "teacher";
  ASSERT_TRUE(
      make_toy_model(teacher, {.layers = 1, .hidden_size = 48, .intermediate_size = 64, .seed = 7})
          .ok());
  for (const std::int64_t top_k : {0, 5}) {
    SftWorkerOptions distilled = options();
    distilled.teacher = TeacherOptions{.model = teacher,
                                       .loss = {.temperature = 2.0, .weight = 0.7, .top_k = top_k}};
    const StepResult whole = step(7, 1, distilled);
    EXPECT_GT(whole.metrics.at("train/kl"), 0.01);
    EXPECT_NEAR(whole.metrics.at("train/loss"),
                0.3 * whole.metrics.at("train/ce_loss") + 0.7 * whole.metrics.at("train/kl"), 1e-9);
    const StepResult cut_up = step(7, 2, distilled, {.samples_max = 2});
    EXPECT_LE(distance(whole.gradient, cut_up.gradient), 1e-6) << top_k;
  }
}

TEST_F(SftWorkerTest, ATeachersDistributionsAreLearnedInTeamsWithTheBitsOfOneWorker) {
  const fs::path teacher = folder_ / "other";
  ASSERT_TRUE(
      make_toy_model(teacher, {.layers = 1, .hidden_size = 48, .intermediate_size = 64, .seed = 7})
          .ok());
  for (const std::int64_t top_k : {0, 5}) {
    SftWorkerOptions distilled = options();
    distilled.teacher = TeacherOptions{.model = teacher,
                                       .loss = {.temperature = 2.0, .weight = 0.7, .top_k = top_k}};
    const std::string alone = model_after(distilled, {}, folder_ / "alone");
    ASSERT_FALSE(alone.empty());
    for (const PassSharing& sharing : {PassSharing{.ranks = 2, .cut = PassCut::kOutputs},
                                       {.ranks = 2, .cut = PassCut::kRows},
                                       {.stages = 2}}) {
      EXPECT_TRUE(model_after(distilled, sharing, folder_ / "team") == alone)
          << sharing.stages << " stages, " << static_cast<int>(sharing.cut);
    }
  }
}

TEST_F(SftWorkerTest, BatchesThatCannotBeAreRefused) {
  const auto worker = make(options());
  SupervisedBatch wrong = batch(0, 1);
  wrong.learned.values[0] = 1;
  EXPECT_EQ(worker->update(wrong, {4, 1e-2}).status().code(), runtime::ErrorCode::kInvalidArgument);
  wrong = batch(0, 1);
  wrong.learned.values.pop_back();
  EXPECT_EQ(worker->evaluate(wrong).status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(worker->update(batch(0, 1), {0, 1e-2}).status().code(),
            runtime::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
