// Activations and gradients between the stages of a pipeline. Ranks are threads, and layers are
// factors.
#include "rl/model/pipeline.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/comm/thread_links.h"
#include "rl/model/autograd.h"
#include "rl/model/guarded.h"
#include "tests/rl/model/large_config.h"

namespace rl {
namespace {

using runtime::Status;

class PipelineTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 2, kWidth = 3;
  static constexpr std::int64_t kBehind = -1;  // all layers
  using Layers = std::vector<std::int64_t>;
  using Body = std::function<void(const Pipeline& pipeline, int rank)>;

  struct Shape {
    std::int64_t layers = 2;
    int stages = 2;
    int chunks = 1;  // of each stage
    int places = 1;  // ranks of each stage
  };

  // What the body has ended with on each rank, whose links go with it.
  static std::vector<Status> ended(const Shape& shape, const Body& body) {
    const ModelConfig config = testing::large_config(shape.layers);
    const std::vector<ParameterSpec> specs = parameter_layout(config);
    auto links = make_thread_links(shape.stages * shape.places);
    std::vector<Status> all(links.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      threads.emplace_back([&, rank] {
        Communicator communicator(std::move(links[rank]));
        const PassTeam team(communicator, shape.stages, shape.chunks, nullptr);
        const Pipeline pipeline(team, StageCuts(config, specs, shape.stages, shape.chunks));
        all[rank] = guarded<void>("a rank", [&] { body(pipeline, static_cast<int>(rank)); });
      });
    }
    for (std::thread& thread : threads) thread.join();
    return all;
  }
  static void on_each(const Shape& shape, const Body& body) {
    const std::vector<Status> all = ended(shape, body);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      EXPECT_TRUE(all[rank].ok()) << "rank " << rank << ": " << all[rank].to_string();
  }

  static at::Tensor numbers() {
    return at::arange(kRows * kWidth, at::kFloat).view({kRows, kWidth}) + 1.0;
  }
  static at::Tensor all_of(double number) { return at::full({kRows, kWidth}, number, at::kFloat); }
  static double factor(std::int64_t layer) { return static_cast<double>(layer) + 2.0; }
  // The numbers as they come to that layer.
  static at::Tensor before(std::int64_t layer) {
    at::Tensor x = numbers();
    for (std::int64_t i = 0; i < layer; ++i) x = x * factor(i);
    return x;
  }

  // With a graph. The way back notes `layer`, where there is one, in `back`.
  static at::Tensor scaled(const at::Tensor& x, double by, Layers* back = nullptr,
                           std::int64_t layer = 0) {
    at::Tensor y = x.detach() * by;
    autograd::connect("scaled", y, {x}, [by, back, layer](const std::vector<at::Tensor>& grads) {
      if (back != nullptr) back->push_back(layer);
      return std::vector<at::Tensor>{grads[0] * by};
    });
    return y;
  }
  // The same values as trained embeddings, whose gradient goes to `gradient`.
  static at::Tensor embeddings(const at::Tensor& values, at::Tensor& gradient) {
    at::Tensor same = values.detach();
    autograd::connect("embeddings", same, {autograd::anchor()},
                      [&gradient](const std::vector<at::Tensor>& grads) {
                        gradient = grads[0];
                        return std::vector<at::Tensor>(1);
                      });
    return same;
  }
  // A pass over the layers, without its outputs.
  static at::Tensor through(const Pipeline& pipeline, at::Tensor x, std::int64_t layers,
                            Layers& back) {
    const Pipeline::Told told = [&back](std::int64_t layer) { back.push_back(layer); };
    const Pipeline::Behind behind = [&back] { back.push_back(kBehind); };
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      x = pipeline.at_layer(layer, x, kRows, kWidth, /*trains=*/true, told, behind);
      if (pipeline.has(layer)) x = scaled(x, factor(layer), &back, layer);
    }
    return x;
  }
  static std::vector<at::Tensor> outputs(const Pipeline& pipeline, const at::Tensor& x,
                                         std::vector<at::Tensor> made, Layers& back) {
    return pipeline.outputs(x, std::move(made),
                            [&back](std::int64_t layer) { back.push_back(layer); });
  }
};

// Of two stages, each with every other layer.
TEST_F(PipelineTest, AChunkTakesTheRowsOfTheOneBeforeAndGivesItsOwn) {
  const auto nothing = [](std::int64_t) {};
  for (const bool trains : {false, true}) {
    on_each({.layers = 4, .chunks = 2}, [&](const Pipeline& pipeline, int rank) {
      const at::NoGradGuard no_graph;
      at::Tensor x = rank == 0 ? numbers() : at::Tensor();
      for (std::int64_t layer = 0; layer < 4; ++layer) {
        const at::Tensor own = x;
        x = pipeline.at_layer(layer, own, kRows, kWidth, trains, nothing, [] {});
        EXPECT_EQ(pipeline.has(layer), layer % 2 == rank);
        if (!pipeline.has(layer)) {
          EXPECT_TRUE(x.is_same(own)) << "rank " << rank << " has what it made, " << layer;
          continue;
        }
        EXPECT_TRUE(x.equal(before(layer))) << "rank " << rank << ", layer " << layer;
        EXPECT_FALSE(x.requires_grad());
        x = x * factor(layer);
      }
      EXPECT_TRUE(x.equal(before(rank == 0 ? 3 : 4)));
    });
  }
}

// Every rank goes back through all layers in one order, its own and those of others.
TEST_F(PipelineTest, GradientsGoBackThroughTheChunksOfAllStages) {
  on_each({.layers = 4, .chunks = 2}, [](const Pipeline& pipeline, int rank) {
    Layers back;
    at::Tensor gradient, x;
    if (pipeline.is_first()) x = embeddings(numbers(), gradient);
    x = through(pipeline, x, 4, back);
    std::vector<at::Tensor> made;
    if (pipeline.is_last()) made = {at::Tensor(), x, all_of(7), scaled(x, 10.0)};
    const std::vector<at::Tensor> there = outputs(pipeline, x, made, back);
    ASSERT_EQ(there.size(), 4u);
    EXPECT_FALSE(there[0].defined());
    EXPECT_TRUE(there[1].equal(before(4)));
    EXPECT_TRUE(there[2].equal(all_of(7)));
    EXPECT_TRUE(there[3].equal(before(4) * 10.0));
    EXPECT_TRUE(there[1].requires_grad() && there[3].requires_grad()) << "on rank " << rank;
    EXPECT_FALSE(there[2].requires_grad());
    EXPECT_TRUE(back.empty());

    autograd::backward({there[1], there[3]}, {all_of(1), all_of(1)});
    const Layers from_the_last = {3, 2, 1, 0};
    const Layers and_behind = {3, 2, 1, 0, kBehind};
    EXPECT_EQ(back, rank == 0 ? from_the_last : and_behind);
    if (rank == 0) {
      ASSERT_TRUE(gradient.defined());
      EXPECT_TRUE(gradient.equal(all_of(11 * 2 * 3 * 4 * 5)));
    }
  });
}

TEST_F(PipelineTest, WithoutAGraphOutputsHaveNone) {
  on_each({}, [](const Pipeline& pipeline, int rank) {
    Layers back;
    at::Tensor gradient, x;
    if (pipeline.is_first()) x = embeddings(numbers(), gradient);
    x = through(pipeline, x, 2, back);
    const at::NoGradGuard no_graph;
    const std::vector<at::Tensor> made = {x};
    const auto there = outputs(pipeline, x, rank == 1 ? made : std::vector<at::Tensor>(), back);
    ASSERT_EQ(there.size(), 1u);
    EXPECT_TRUE(there[0].equal(before(2)));
    if (rank == 0) {
      EXPECT_FALSE(there[0].requires_grad());
    }
  });
}

// The stage before waits for a gradient in any case.
TEST_F(PipelineTest, AGradientThatIsNotThereIsZeros) {
  on_each({}, [](const Pipeline& pipeline, int) {
    Layers back;
    at::Tensor gradient, x;
    if (pipeline.is_first()) x = scaled(embeddings(numbers(), gradient), 2.0);
    x = pipeline.at_layer(
        1, x, kRows, kWidth, /*trains=*/true, [](std::int64_t) {}, [] {});
    std::vector<at::Tensor> made;
    if (pipeline.is_last()) {
      at::Tensor cut_off = x.detach();
      autograd::connect("cut off", cut_off, {x},
                        [](const std::vector<at::Tensor>&) { return std::vector<at::Tensor>(1); });
      made = {cut_off};
    }
    const std::vector<at::Tensor> there = outputs(pipeline, x, made, back);
    ASSERT_EQ(there.size(), 1u);
    autograd::backward({there[0]}, {all_of(1)});
    if (pipeline.is_first()) {
      ASSERT_TRUE(gradient.defined());
      EXPECT_TRUE(gradient.equal(all_of(0)));
    }
  });
}

TEST_F(PipelineTest, RanksOfAStageHaveTheirPartnersInTheOthers) {
  on_each({.places = 2}, [](const Pipeline& pipeline, int rank) {
    EXPECT_EQ(pipeline.stage(), rank / 2);
    EXPECT_EQ(pipeline.is_first(), rank < 2);
    EXPECT_EQ(pipeline.is_last(), rank >= 2);
    Layers back;
    at::Tensor gradient, x;
    const double place = rank % 2 + 1.0;
    if (pipeline.is_first()) x = embeddings(numbers() * place, gradient);
    x = through(pipeline, x, 2, back);
    EXPECT_TRUE(x.equal(before(pipeline.stage() + 1) * place));
    // Ranks of the last stage have made the same of their rows.
    std::vector<at::Tensor> made;
    if (pipeline.is_last()) made = {scaled(x, 1.0 / place)};
    const std::vector<at::Tensor> there = outputs(pipeline, x, made, back);
    ASSERT_EQ(there.size(), 1u);
    EXPECT_TRUE(there[0].equal(before(2)));
    autograd::backward({there[0]}, {all_of(1)});
    if (pipeline.is_first()) {
      EXPECT_TRUE(gradient.equal(all_of(2 * 3 / place)));
    }
  });
}

TEST_F(PipelineTest, TheGradientOfEmbeddingsGoesToTheLastStageToo) {
  on_each({.layers = 3, .stages = 3}, [](const Pipeline& pipeline, int rank) {
    if (rank > 0) {
      const at::Tensor there = pipeline.gradient_of_first(kRows, kWidth);
      ASSERT_EQ(there.defined(), rank == 2);
      if (rank == 2) {
        EXPECT_TRUE(there.equal(before(1)));
      }
      return;
    }
    const at::Tensor frozen = numbers();
    EXPECT_TRUE(pipeline.giving_gradient_to_last(frozen).is_same(frozen)) << "it has no gradient";
    at::Tensor gradient;
    const at::Tensor same = pipeline.giving_gradient_to_last(embeddings(numbers(), gradient));
    EXPECT_TRUE(same.equal(numbers()));
    autograd::backward({same}, {before(1)});
    EXPECT_TRUE(gradient.equal(before(1)));
  });
}

TEST_F(PipelineTest, AStageThatFailsEndsThePassOfTheOthers) {
  const std::vector<Status> all = ended({}, [](const Pipeline& pipeline, int rank) {
    if (rank == 1) throw StatusException(runtime::task_failed("no layers today"));
    Layers back;
    (void)through(pipeline, numbers(), 2, back);
  });
  EXPECT_EQ(all[0].code(), runtime::ErrorCode::kUnavailable) << all[0].to_string();
  EXPECT_NE(all[0].message().find("activations of a stage"), std::string::npos) << all[0].message();
  EXPECT_EQ(all[1].code(), runtime::ErrorCode::kTaskFailed);
}

}  // namespace
}  // namespace rl
