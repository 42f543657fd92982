// One pass of a small model whose attention is a fake: outputs, listeners, pipeline stages.
#include "rl/model/graph.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/model/autograd.h"
#include "rl/model/dropout.h"
#include "rl/model/guarded.h"
#include "rl/model/layer_listener.h"
#include "rl/model/lora.h"
#include "rl/model/pass_team.h"
#include "rl/model/stage_stream.h"
#include "tests/rl/plan/small_config.h"

namespace rl {
namespace {

class GraphTest : public ::testing::Test {
 protected:
  using Layers = std::vector<std::int64_t>;

  // Notes the layers in the order of their notifications.
  struct Noted final : LayerListener {
    void before_forward(std::int64_t layer) override { forward.push_back(layer); }
    void before_backward(std::int64_t layer) override {
      backward.push_back(layer);
      if (look) look(layer);
    }

    Layers forward, backward;
    std::function<void(std::int64_t layer)> look;
  };

  GraphTest() {
    config_.tie_word_embeddings = false;
    config_.initializer_range = 0.3F;
  }

  forward::RowsPtr rows() const {
    PackedBatch batch;
    batch.append(std::vector<std::int32_t>{3, 1, 4});
    batch.append(std::vector<std::int32_t>{1, 5});
    const Rope rope(config_.rope, config_.rotated());
    return std::make_shared<const forward::Rows>(batch, rope, /*share=*/false);
  }
  // As wide as attention's outputs.
  static at::Tensor halved(std::int64_t, const forward::AttentionShape&, const at::Tensor& q,
                           const at::Tensor&, const at::Tensor&) {
    return q * 0.5;
  }
  at::Tensor numbers(std::int64_t count) const {
    return at::randn({count, config_.hidden_size},
                     at::Generator(at::make_generator<at::CPUGeneratorImpl>(7)));
  }
  static void go_back(const at::Tensor& output) {
    autograd::backward({output}, {at::ones_like(output)});
  }

  ModelConfig config_ = small_config();
  kernel::ThreadPool pool_{1};
};

TEST_F(GraphTest, ItsInputIsTheScaledRowsOfTheTable) {
  config_.embedding_scale = 3.0;
  const Parameters values = Parameters::zeros(config_);  // of which no layer makes anything
  const at::Tensor table = values.view("model.embed_tokens.weight");
  table.copy_(numbers(config_.vocab_size));
  const Graph graph(config_, values, nullptr, pool_);
  const at::Tensor hidden = graph.hidden_states(rows(), halved, {});
  ASSERT_EQ(hidden.size(0), 5);
  const Layers ids = {3, 1, 4, 1, 5};
  for (std::int64_t row = 0; row < 5; ++row) {
    const at::Tensor of_id = table.select(0, ids[static_cast<std::size_t>(row)]);
    EXPECT_TRUE(hidden.select(0, row).equal(of_id * 3.0)) << row;
  }
  EXPECT_FALSE(hidden.requires_grad());
}

TEST_F(GraphTest, AttentionIsAskedForLayerByLayerAndAgainWhereLayersAreRecomputed) {
  const Parameters values = Parameters::random(config_, 1);
  GradientArena gradients(Parameters::zeros(config_));
  const Graph graph(config_, values, &gradients, pool_), frozen(config_, values, nullptr, pool_);
  Layers asked;
  const Attend attend = [&asked](std::int64_t layer, const forward::AttentionShape& shape,
                                 const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    asked.push_back(layer);
    return halved(layer, shape, q, k, v);
  };
  std::vector<at::Tensor> sums;
  for (const bool recompute : {false, true}) {
    asked.clear();
    gradients.forget();
    const at::Tensor hidden = graph.hidden_states(rows(), attend, {.recompute_layers = recompute});
    EXPECT_EQ(asked, (Layers{0, 1}));
    go_back(hidden);
    EXPECT_EQ(asked, recompute ? (Layers{0, 1, 1, 0}) : (Layers{0, 1}));
    sums.push_back(gradients.settled().arena().clone());
  }
  EXPECT_GT(sums[0].abs().sum().item<double>(), 0.0);
  EXPECT_TRUE(sums[0].equal(sums[1]));

  asked.clear();
  EXPECT_FALSE(frozen.hidden_states(rows(), attend, {.recompute_layers = true}).requires_grad());
  EXPECT_EQ(asked, (Layers{0, 1}));
}

TEST_F(GraphTest, ListenersHearOfALayerBeforeItsWeightsAreReadAndItsGradientsAdded) {
  const Parameters values = Parameters::random(config_, 1);
  GradientArena gradients(Parameters::zeros(config_));
  Graph graph(config_, values, &gradients, pool_);
  Noted noted;
  std::vector<bool> last_has_one;  // at each notification: whether the last layer has a gradient
  noted.look = [&](std::int64_t) {
    const at::Tensor of_last = gradients.memory().view("model.layers.1.mlp.down_proj.weight");
    last_has_one.push_back(of_last.ne(0.0).any().item<bool>());
  };
  graph.tell({&noted});
  const at::Tensor normed = graph.last_norm(graph.hidden_states(rows(), halved, {}), {});
  EXPECT_EQ(noted.forward, (Layers{-1, 0, 1, 2}));
  EXPECT_TRUE(noted.backward.empty());
  go_back(normed);
  EXPECT_EQ(noted.backward, (Layers{1, 0}));
  EXPECT_EQ(last_has_one, (std::vector<bool>{false, true}));

  graph.tell({});
  go_back(graph.hidden_states(rows(), halved, {}));
  EXPECT_EQ(noted.forward.size() + noted.backward.size(), 6u) << "it heard another pass";
}

TEST_F(GraphTest, AllLogitsHaveTheModelsCap) {
  config_.logit_softcap = 2.0;
  const Parameters values = Parameters::random(config_, 1);
  GradientArena gradients(Parameters::zeros(config_));
  const Graph graph(config_, values, &gradients, pool_);
  const at::Tensor normed = numbers(3) * 2.0;
  const at::Tensor expected =
      at::tanh(at::mm(normed, values.view("lm_head.weight").t()) / 2.0) * 2.0;
  ASSERT_GT(expected.abs().max().item<double>(), 1.0) << "the cap says something";

  const at::Tensor logits = graph.logits(normed, {});
  EXPECT_TRUE(at::allclose(logits, expected, 1e-4, 1e-4));
  EXPECT_FALSE(logits.requires_grad()) << "though the output layer is trained";
  const at::Tensor learned = normed.clone().set_requires_grad(true);
  const at::Tensor trained = graph.trained_logits(learned, {});
  EXPECT_TRUE(at::allclose(trained, expected, 1e-4, 1e-4));
  EXPECT_TRUE(trained.requires_grad());
  const OfLogits first_two = [](const at::Tensor& logits_RV, std::int64_t) {
    return logits_RV.narrow(1, 0, 2).contiguous();
  };
  EXPECT_TRUE(
      at::allclose(graph.of_logits(normed, first_two, {}), expected.narrow(1, 0, 2), 1e-4, 1e-4));

  // Another cap is not the caller's to ask for.
  const std::vector<std::int32_t> targets = {4, 0, 31};
  const at::Tensor logprobs = graph.logprobs(normed, targets, {.softcap = 0.1F}, {}).logprob;
  const at::Tensor all = at::log_softmax(expected, 1);
  for (std::int64_t row = 0; row < 3; ++row) {
    EXPECT_NEAR(logprobs[row].item<double>(),
                all[row][targets[static_cast<std::size_t>(row)]].item<double>(), 1e-4)
        << row;
  }
}

TEST_F(GraphTest, HeadsAreFoundByTheirPlace) {
  config_.output_heads = {HeadConfig{.name = "value"}, HeadConfig{.name = "length", .outputs = 3}};
  const Parameters values = Parameters::random(config_, 1);
  const Graph graph(config_, values, nullptr, pool_);
  const at::Tensor normed = numbers(4);
  for (const std::size_t place : {0u, 1u}) {
    const at::Tensor weight = values.view(config_.output_heads[place].name + ".weight");
    const at::Tensor made = graph.head(place, normed, {});
    ASSERT_EQ(made.size(1), weight.size(0));
    EXPECT_TRUE(at::allclose(made, at::mm(normed, weight.t()), 1e-4, 1e-4)) << place;
  }
}

TEST_F(GraphTest, AnAdapterCountsPassesThatTrainIt) {
  LoraConfig lora;
  lora.rank = 2;
  lora.dropout = 0.5;
  const auto adapter = LoraAdapter::create(config_, lora, 1);
  ASSERT_TRUE(adapter.ok()) << adapter.status().to_string();
  const auto specs = adapter->parameters().specs();
  GradientArena gradients(
      Parameters::zeros(std::vector<ParameterSpec>(specs.begin(), specs.end())));
  const Parameters values = Parameters::random(config_, 1);
  DropoutPasses passes;
  const Graph frozen(config_, values, nullptr, pool_, BoundAdapter{*adapter, nullptr, &passes});
  const Graph trained(config_, values, nullptr, pool_, BoundAdapter{*adapter, &gradients, &passes});
  (void)frozen.hidden_states(rows(), halved, {});
  EXPECT_EQ(passes.next().index, 0u);
  (void)trained.hidden_states(rows(), halved, {});
  EXPECT_EQ(passes.next().index, 1u);
  const at::NoGradGuard no_graph;
  (void)trained.hidden_states(rows(), halved, {});
  EXPECT_EQ(passes.next().index, 1u);
}

// A model on two stages, one layer each. Ranks are threads.
class StagedGraphTest : public GraphTest {
 protected:
  StagedGraphTest() { config_.tie_word_embeddings = true; }

  struct Stage {
    Graph& graph;
    GradientArena& gradients;
    const int rank;
    bool is_last() const { return rank == 1; }
  };

  void on_each(const std::function<void(const Stage& stage)>& body, bool streams = false) {
    auto all = make_thread_links(2), stages = make_thread_links(2), losses = make_thread_links(2);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        Communicator communicator(std::move(all[rank]));
        PipelineLinks links;
        links.stages = std::make_unique<PeerMessages>(std::move(stages[rank]));
        links.losses = std::make_unique<PeerMessages>(std::move(losses[rank]));
        const PassTeam team(communicator, 2, 1, nullptr, streams ? &links : nullptr);
        kernel::ThreadPool pool(1);
        GradientArena gradients(Parameters::zeros(config_));
        const runtime::Status ended = guarded<void>("a stage", [&] {
          Graph graph(config_, values_, &gradients, pool, std::nullopt, &team);
          body({graph, gradients, static_cast<int>(rank)});
          throw_unless_ok(links.stages->flush());
        });
        EXPECT_TRUE(ended.ok()) << "rank " << rank << ": " << ended.to_string();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  const Parameters values_ = Parameters::random(tied_config(), 1);

 private:
  static ModelConfig tied_config() {
    ModelConfig config = small_config();
    config.initializer_range = 0.3F;
    return config;
  }
};

TEST_F(StagedGraphTest, StagesHaveThePassOfOneRankAndHearOfAllLayers) {
  GradientArena gradients(Parameters::zeros(config_));
  const Graph whole(config_, values_, &gradients, pool_);
  EXPECT_FALSE(whole.has_tied_stages());
  const at::Tensor expected = whole.last_norm(whole.hidden_states(rows(), halved, {}), {});
  go_back(expected);
  const at::Tensor sums = gradients.settled().arena().clone();
  const std::vector<std::vector<std::string>> names = {
      {"model.layers.0.self_attn.q_proj.weight", "model.layers.0.mlp.down_proj.weight"},
      {"model.layers.1.self_attn.q_proj.weight", "model.norm.weight", "model.embed_tokens.weight"}};

  on_each([&](const Stage& stage) {
    Noted noted;
    stage.graph.tell({&noted});
    EXPECT_EQ(stage.graph.makes_outputs(), stage.is_last());
    EXPECT_TRUE(stage.graph.has_tied_stages());
    EXPECT_EQ(stage.graph.stream(), nullptr);
    const at::Tensor hidden = stage.graph.hidden_states(rows(), halved, {});
    std::vector<at::Tensor> made;
    if (stage.is_last()) made = {stage.graph.last_norm(hidden, {})};
    const std::vector<at::Tensor> there = stage.graph.outputs(hidden, made);
    ASSERT_EQ(there.size(), 1u);
    EXPECT_TRUE(there[0].equal(expected)) << "rank " << stage.rank;
    EXPECT_EQ(noted.forward, (Layers{-1, 0, 1, 2})) << "rank " << stage.rank;
    go_back(there[0]);
    EXPECT_EQ(noted.backward, (Layers{1, 0})) << "rank " << stage.rank;
    const Parameters& own = stage.gradients.settled();
    for (const std::string& name : names[static_cast<std::size_t>(stage.rank)]) {
      const ParameterSpec& spec = *own.find(name);
      EXPECT_TRUE(own.view(name).flatten().equal(sums.narrow(0, spec.offset, spec.count)))
          << "rank " << stage.rank << ": " << name;
    }
    for (const std::string& name : names[static_cast<std::size_t>(1 - stage.rank)])
      EXPECT_FALSE(own.view(name).ne(0.0).any().item<bool>()) << stage.rank << ": " << name;
  });
}

TEST_F(StagedGraphTest, AChunkTakesItsInputFromTheStageBefore) {
  const at::NoGradGuard no_graph;
  const Graph whole(config_, values_, nullptr, pool_);
  const at::Tensor expected = whole.hidden_states(rows(), halved, {});
  on_each(
      [&](const Stage& stage) {
        const at::NoGradGuard none;
        ASSERT_NE(stage.graph.stream(), nullptr);
        Noted noted;
        stage.graph.tell({&noted});
        const at::Tensor made = stage.graph.chunk_states(stage.rank, rows(), halved, {});
        EXPECT_EQ(made.equal(expected), stage.is_last());
        EXPECT_EQ(noted.forward, stage.is_last() ? (Layers{1}) : (Layers{-1, 0}))
            << "of its own layers alone";
      },
      /*streams=*/true);
}

}  // namespace
}  // namespace rl
