#include "rl/optim/learner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/optim/hidden_matrices.h"

namespace rl {
namespace {

// One layer with every kind of parameter: an embedding, its own output layer, matrices,
// biases and norms.
ModelConfig config() {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 16;
  config.layers = 1;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 8;
  config.intermediate_size = 24;
  config.vocab_size = 31;
  config.max_position_embeddings = 32;
  config.attention_bias = config.mlp_bias = true;
  return config;
}

// Its biases are no zeros, so that a decay of them shows.
std::unique_ptr<Transformer> model() {
  Parameters parameters = Parameters::random(config(), 1);
  for (const ParameterSpec& spec : parameters.specs()) {
    if (spec.name.ends_with(".bias")) parameters.view(spec).fill_(0.5);
  }
  return std::make_unique<Transformer>(config(), std::move(parameters),
                                       TransformerOptions{.threads = 1});
}

std::vector<float> values(const at::Tensor& arena) {
  return {arena.const_data_ptr<float>(), arena.const_data_ptr<float>() + arena.numel()};
}

LearnerOptions decaying(OptimizerKind kind, bool decay_norms) {
  LearnerOptions options;
  options.optimizer = kind;
  options.adamw.weight_decay = options.sgd.weight_decay = options.muon.weight_decay = 0.5F;
  options.decay_norms = decay_norms;
  return options;
}

const std::vector<OptimizerKind> kKinds{OptimizerKind::kAdamW, OptimizerKind::kSgd,
                                        OptimizerKind::kMuon};

/// Bytes that a line of /proc/self/status has in kB.
std::int64_t status_bytes(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

TEST(Learner, ResetsItsOptimizerWithoutTwoStatesAtATime) {
  ModelConfig large = config();
  large.vocab_size = 1 << 18;
  auto weights = std::make_unique<Transformer>(large, Parameters::random(large, 1),
                                               TransformerOptions{.threads = 1});
  const std::int64_t state =
      2 * static_cast<std::int64_t>(sizeof(float)) * weights->parameters().arena_size();
  Learner learner(std::move(weights), make_single_communicator(), {});
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins again
  const std::int64_t before = status_bytes("VmRSS");
  if (status_bytes("VmHWM") > before + state / 4) GTEST_SKIP() << "the peak cannot be reset";
  learner.reset_optimizer();
  EXPECT_LT(status_bytes("VmHWM"), before + state / 2) << "a state has " << state << " bytes";
}

// Gradients are zero, so that decay is all there is.
TEST(Learner, MatricesDecayAndNormsAndBiasesOnlyIfAskedTo) {
  for (const OptimizerKind kind : kKinds) {
    for (const bool decay_norms : {false, true}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(kind)) + (decay_norms ? " with norms" : ""));
      Learner learner(model(), make_single_communicator(), decaying(kind, decay_norms));
      const Parameters& parameters = learner.model().parameters();
      const std::vector<float> before = values(parameters.arena());
      for (int step = 0; step < 3; ++step) {
        const auto report = learner.apply(0.1);
        ASSERT_TRUE(report.ok()) << report.status().to_string();
        EXPECT_EQ(report->grad_norm, 0.0);
      }
      const std::vector<float> after = values(parameters.arena());
      int vectors = 0, matrices = 0;
      for (const ParameterSpec& spec : parameters.specs()) {
        const bool is_vector = spec.shape.size() < 2;
        ++(is_vector ? vectors : matrices);
        const double keep = is_vector && !decay_norms ? 1.0 : std::pow(1.0 - 0.1 * 0.5, 3);
        double worst = 0.0, size = 0.0;
        for (auto i = static_cast<std::size_t>(spec.offset);
             i < static_cast<std::size_t>(spec.offset + spec.count); ++i) {
          worst = std::max(worst, std::abs(after[i] - before[i] * keep));
          size = std::max(size, std::abs(double{before[i]}));
        }
        EXPECT_GT(size, 0.0) << spec.name;
        EXPECT_LE(worst, keep == 1.0 ? 0.0 : 1e-6 * size) << spec.name;
      }
      EXPECT_EQ(vectors, 3 + 7);  // norms; biases of all matrices of the layer
      EXPECT_EQ(matrices, 2 + 7);
    }
  }
}

using Tokens = std::vector<std::int32_t>;

// A step on these sequences, whose targets are a part of `all`.
void learn(Learner& learner, const std::vector<Tokens>& sequences, double all) {
  PackedBatch batch;
  for (const Tokens& tokens : sequences)
    if (!tokens.empty()) batch.append(tokens);
  if (batch.sequences() > 0) {
    const auto logprobs = learner.model().token_logprobs(batch);
    ASSERT_TRUE(logprobs.ok()) << logprobs.status().to_string();
    (logprobs->logprobs_N.sum() * (-1.0 / all)).backward();
  }
  const auto report = learner.apply(0.5);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_FALSE(report->skipped);
}

// Each rank looks up other rows of a large table in each step, and one of them none at all in some.
// What the sum over ranks has left in a rank's memory is not in its next gradient.
TEST(Learner, RanksThatLookUpDifferentRowsLearnWhatOneDoes) {
  ModelConfig large = config();
  large.vocab_size = 1000;
  const auto made = [&] {
    return std::make_unique<Transformer>(large, Parameters::random(large, 1),
                                         TransformerOptions{.threads = 1});
  };
  LearnerOptions options;
  options.optimizer = OptimizerKind::kSgd;
  options.grad_norm_max = 0.0;
  const std::vector<std::array<Tokens, 2>> steps = {{Tokens{1, 2, 3}, Tokens{4, 5}},
                                                    {Tokens{6, 7}, Tokens{}},
                                                    {Tokens{8, 9}, Tokens{}},
                                                    {Tokens{10, 11}, Tokens{12, 13}}};
  const auto targets = [](const std::array<Tokens, 2>& step) {
    double count = 0.0;
    for (const Tokens& tokens : step) count += tokens.empty() ? 0.0 : std::ssize(tokens) - 1.0;
    return count;
  };

  Learner alone(made(), make_single_communicator(), options);
  for (const auto& step : steps) learn(alone, {step[0], step[1]}, targets(step));

  std::vector<std::unique_ptr<Links>> ends = make_thread_links(2);
  std::array<std::vector<float>, 2> learned;
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      Learner learner(made(), std::make_unique<Communicator>(std::move(ends[rank])), options);
      for (const auto& step : steps) learn(learner, {step[rank]}, targets(step));
      learned[rank] = values(learner.model().parameters().arena());
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(learned[0], learned[1]);
  const std::vector<float> expected = values(alone.model().parameters().arena());
  double worst = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::abs(double{expected[i]} - learned[0][i]));
  EXPECT_LT(worst, 1e-6);
}

// Muon averages gradients with 0.95 where it orthogonalises, AdamW with 0.9: after one step from
// zero a twentieth of the gradient, or a tenth.
// Large enough for several ranks to have a part of it.
std::unique_ptr<Transformer> larger_model() {
  ModelConfig large = config();
  large.hidden_size = 128;
  large.head_dim = 64;
  large.intermediate_size = 200;
  large.vocab_size = 997;
  return std::make_unique<Transformer>(large, Parameters::random(large, 1),
                                       TransformerOptions{.threads = 1});
}

LearnerOptions with_zero(ZeroLevel zero) {
  LearnerOptions options = decaying(OptimizerKind::kAdamW, false);
  options.grad_norm_max = 0.5;
  options.zero = zero;
  return options;
}

void draw_gradients(Learner& learner, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  GradientArena& gradients = learner.model().gradient_arena();
  for (const ParameterSpec& spec : gradients.memory().specs()) {
    const at::Tensor gradient = gradients.memory().view(spec);
    (void)gradients.sum_of(gradient)->begin();  // as a pass does before it writes
    float* into = gradient.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < spec.count; ++i) into[i] = normal(random);
  }
}

struct Trained {
  std::vector<std::vector<float>> weights;  // by rank
  std::vector<double> norms;
  std::vector<std::size_t> state_elements;  // of each rank's optimizer
};

// Steps `first` to `last` of N ranks, from a folder and into another where there are any.
Trained train(int ranks, ZeroLevel zero, int first, int last,
              const std::filesystem::path& from = {}, const std::filesystem::path& into = {}) {
  constexpr int kLeaves = 4;
  Trained trained;
  trained.weights.resize(static_cast<std::size_t>(ranks));
  trained.state_elements.resize(static_cast<std::size_t>(ranks));
  auto links = make_thread_links(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      Learner learner(larger_model(), std::make_unique<Communicator>(std::move(links[at])),
                      with_zero(zero));
      if (!from.empty()) {
        ASSERT_TRUE(learner.load(from).ok());
      }
      for (int step = first; step < last; ++step) {
        for (int leaf = rank; leaf - rank < kLeaves; leaf += ranks) {
          draw_gradients(learner, static_cast<unsigned>(step * kLeaves + leaf));
          std::vector<std::uint8_t> adds;
          for (int r = 0; r < ranks; ++r) adds.push_back(leaf - rank + r < kLeaves ? 1 : 0);
          ASSERT_TRUE(learner.add_round(adds, leaf - rank + ranks >= kLeaves).ok());
        }
        const auto report = learner.apply(0.01);
        ASSERT_TRUE(report.ok()) << report.status().to_string();
        if (rank == 0) trained.norms.push_back(report->grad_norm);
      }
      ASSERT_TRUE(learner.check_equal_weights().ok());
      ASSERT_TRUE(learner.collect_state().ok());
      if (rank == 0 && !into.empty()) {
        const auto saved = learner.save(into);
        ASSERT_TRUE(saved.ok()) << saved.status().to_string();
      }
      trained.weights[at] = values(learner.model().parameters().arena());
      trained.state_elements[at] = learner.optimizer_state().front().values.size();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return trained;
}

TEST(Learner, ShardedMomentsGiveTheSameBitsForAPartOfTheMemory) {
  const Trained whole = train(1, ZeroLevel::kNone, 0, 4);
  for (const int ranks : {1, 2, 3, 4}) {
    const Trained sharded = train(ranks, ZeroLevel::kMoments, 0, 4);
    EXPECT_EQ(sharded.norms, whole.norms) << ranks;
    std::size_t elements = 0;
    for (std::size_t rank = 0; rank < sharded.weights.size(); ++rank) {
      EXPECT_TRUE(sharded.weights[rank] == whole.weights[0]) << rank << " of " << ranks;
      EXPECT_LE(sharded.state_elements[rank],
                whole.weights[0].size() / static_cast<std::size_t>(ranks) + kNormChunk);
      elements += sharded.state_elements[rank];
    }
    EXPECT_EQ(elements, whole.weights[0].size()) << "each once";
  }
}

TEST(Learner, ACheckpointOfOneNumberOfRanksGoesOnWithAnother) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("starling-learner-" + std::to_string(::getpid()));
  const Trained whole = train(1, ZeroLevel::kNone, 0, 4);
  (void)train(3, ZeroLevel::kMoments, 0, 2, {}, folder / "of_three");
  for (const auto& [ranks, zero] :
       {std::pair(1, ZeroLevel::kNone), {2, ZeroLevel::kMoments}, {4, ZeroLevel::kMoments}}) {
    const Trained rest = train(ranks, zero, 2, 4, folder / "of_three");
    EXPECT_TRUE(rest.weights[0] == whole.weights[0]) << ranks;
  }
  std::filesystem::remove_all(folder);
}

TEST(MomentHomes, AreAllOfItAndBeginWithAChunk) {
  for (const std::int64_t elements : {std::int64_t{1}, kNormChunk, 5 * kNormChunk + 16}) {
    for (const int ranks : {1, 2, 3, 7}) {
      std::int64_t next = 0;
      for (const ArenaRange& home : moment_homes(elements, ranks)) {
        EXPECT_EQ(home.begin, next);
        EXPECT_TRUE(home.begin % kNormChunk == 0 || home.begin == elements);
        next = home.end;
      }
      EXPECT_EQ(next, elements);
    }
  }
}

TEST(Learner, MuonIsForTheMatricesBetweenTheLayers) {
  LearnerOptions options;
  options.optimizer = OptimizerKind::kMuon;
  options.grad_norm_max = 0.0;
  Learner learner(model(), make_single_communicator(), options);
  learner.model().gradients().arena().fill_(0.01);
  ASSERT_TRUE(learner.apply(1e-3).ok());
  const std::span<const float> momentum = learner.optimizer_state().front().values;
  for (const ParameterSpec& spec : learner.model().parameters().specs()) {
    const bool between = spec.name.ends_with("_proj.weight");
    EXPECT_NEAR(momentum[static_cast<std::size_t>(spec.offset)], between ? 0.05 * 0.01 : 0.1 * 0.01,
                1e-8)
        << spec.name;
  }
}

TEST(HiddenMatrices, AreThoseOfTheLayers) {
  const std::vector<ParameterSpec> specs = parameter_layout(config());
  std::vector<std::string> names;
  for (const ArenaMatrix& matrix : hidden_matrices(specs)) {
    const auto spec = std::find_if(specs.begin(), specs.end(), [&](const ParameterSpec& one) {
      return one.offset == matrix.offset;
    });
    ASSERT_NE(spec, specs.end());
    EXPECT_EQ(spec->shape, (std::vector<std::int64_t>{matrix.rows, matrix.columns})) << spec->name;
    names.push_back(spec->name.substr(spec->name.find("layers.0.") + 9));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"self_attn.q_proj.weight", "self_attn.k_proj.weight",
                                             "self_attn.v_proj.weight", "self_attn.o_proj.weight",
                                             "mlp.gate_proj.weight", "mlp.up_proj.weight",
                                             "mlp.down_proj.weight"}));
}

// Tables and heads by other families' names, a buffer, a vector; and one that is meant.
TEST(HiddenMatrices, LeaveOutWhatIsLookedUpAndWhatIsFrozen) {
  std::vector<ParameterSpec> specs;
  for (const char* name :
       {"transformer.wte.weight", "transformer.wpe.weight", "lm_head.weight", "score.weight",
        "transformer.output_layer.weight", "buffer", "norm.weight", "h.0.mlp.weight"}) {
    specs.push_back({.name = name,
                     .shape = {4, 8},
                     .offset = 32 * static_cast<std::int64_t>(specs.size()),
                     .count = 32});
  }
  specs[5].frozen = true;
  specs[6].shape = {32};
  const std::vector<ArenaMatrix> matrices = hidden_matrices(specs);
  ASSERT_EQ(matrices.size(), 1u);
  EXPECT_EQ(matrices[0].offset, 7 * 32);
  EXPECT_EQ(matrices[0].rows, 4);
  EXPECT_EQ(matrices[0].columns, 8);
}

TEST(DecayedRanges, AreJoinedWhereTheyTouchAndLeaveOutVectorsAndBuffers) {
  const std::vector<ParameterSpec> specs{
      {.name = "embed", .shape = {4, 8}, .offset = 0, .count = 32},
      {.name = "q", .shape = {4, 8}, .offset = 32, .count = 32},
      {.name = "norm", .shape = {16}, .offset = 64, .count = 16},
      {.name = "buffer", .shape = {4, 4}, .offset = 80, .count = 16, .frozen = true},
      {.name = "down", .shape = {2, 8}, .offset = 96, .count = 16}};
  EXPECT_EQ(decayed_ranges(specs), (std::vector<ArenaRange>{{0, 64}, {96, 112}}));
  EXPECT_EQ(decayed_ranges(specs, /*with_norms=*/true),
            (std::vector<ArenaRange>{{0, 80}, {96, 112}}));
}

}  // namespace
}  // namespace rl
