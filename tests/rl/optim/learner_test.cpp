#include "rl/optim/learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"

namespace rl {
namespace {

// One layer with every kind of parameter: an embedding, an output layer of its own, matrices,
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
