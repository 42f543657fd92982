#include "rl/model/projector.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "rl/model/pass_team.h"
#include "tests/rl/model/bound_layers.h"
#include "tests/rl/model/team_threads.h"

namespace rl {
namespace {

bool are_close(const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 1e-5, 1e-5); }

class ProjectorTest : public ::testing::Test {
 protected:
  at::Tensor numbers(std::int64_t rows, std::int64_t columns) {
    return at::randn({rows, columns}, random_);
  }
  // Of rank 2 next to a layer of 4 inputs and 4 outputs.
  bound::LinearAdapter adapter() const {
    bound::LinearAdapter made;
    made.a = testing::frozen_linear(down_);
    made.b = testing::frozen_linear(up_);
    made.scale = 0.5F;
    made.module = 7;
    return made;
  }
  at::Tensor of_adapter(const at::Tensor& x) const {
    return at::mm(at::mm(x, down_.t()), up_.t()) * 0.5;
  }

  kernel::ThreadPool pool_{1};
  const PassContext pass_{pool_, {}};
  at::Generator random_ = at::make_generator<at::CPUGeneratorImpl>(5);
  const at::Tensor x_ = numbers(9, 4);
  const at::Tensor first_ = numbers(4, 4), second_ = numbers(4, 4);
  const at::Tensor down_ = numbers(2, 4), up_ = numbers(4, 2);
};

TEST_F(ProjectorTest, AnAdapterStandsNextToItsLayerAlone) {
  bound::Projection layers = testing::frozen_projection({first_, second_});
  layers.adapters = {{}, adapter()};
  const std::vector<at::Tensor> y = Projector(pass_, std::nullopt, nullptr)(x_, layers);
  ASSERT_EQ(y.size(), 2u);
  EXPECT_TRUE(are_close(y[0], at::mm(x_, first_.t())));
  EXPECT_TRUE(are_close(y[1], at::mm(x_, second_.t()) + of_adapter(x_)));
}

TEST_F(ProjectorTest, LayersAndTheirAdaptersSeeTheNormedRows) {
  const at::Tensor weight = numbers(1, 4).squeeze(0);
  const ops::Norm norm = testing::frozen_rms(weight);
  const at::Tensor normed = x_ * at::rsqrt((x_ * x_).mean(1, /*keepdim=*/true) + norm.eps) * weight;
  const Projector project(pass_, std::nullopt, nullptr);
  bound::Projection layers = testing::frozen_projection({first_});
  EXPECT_TRUE(are_close(project.normed(x_, norm, layers)[0], at::mm(normed, first_.t())));
  layers.adapters = {adapter()};
  EXPECT_TRUE(are_close(project.normed(x_, norm, layers)[0],
                        at::mm(normed, first_.t()) + of_adapter(normed)));
  EXPECT_TRUE(
      are_close(project.normed(x_, {}, layers)[0], at::mm(x_, first_.t()) + of_adapter(x_)));
}

TEST_F(ProjectorTest, OnlyAnAdapterThatLearnsDropsInputs) {
  const DropoutPass dropout{.seed = 3, .rank = 0, .index = 1};
  bound::Projection layers = testing::frozen_projection({first_});
  layers.adapters = {adapter()};
  layers.adapters[0].dropout = 0.5;
  const at::Tensor base = at::mm(x_, first_.t());
  const at::Tensor whole = base + of_adapter(x_);
  EXPECT_TRUE(are_close(Projector(pass_, dropout, nullptr).one(x_, layers), whole)) << "frozen";
  testing::TrainedWeights trained({{"a", down_}});
  layers.adapters[0].a.weight = trained["a"];
  EXPECT_TRUE(are_close(Projector(pass_, std::nullopt, nullptr).one(x_, layers), whole))
      << "in a pass that does not train";
  const at::Tensor dropped = dropped_out(pool_, x_, 0.5, dropout, /*module=*/7);
  EXPECT_TRUE(
      are_close(Projector(pass_, dropout, nullptr).one(x_, layers), base + of_adapter(dropped)));
}

TEST_F(ProjectorTest, AnMlpHasAGateOrNone) {
  const Projector project(pass_, std::nullopt, nullptr);
  const at::Tensor gate = at::relu(at::mm(x_, first_.t())), up = at::mm(x_, second_.t());
  const at::Tensor last = numbers(4, 4);
  bound::Mlp gated{testing::frozen_projection({first_, second_}),
                   testing::frozen_projection({last})};
  const bound::Mlp plain{testing::frozen_projection({first_}), testing::frozen_projection({last})};
  const auto relu = kernel::Activation::kRelu;
  EXPECT_TRUE(are_close(project.mlp(relu, x_, gated), at::mm(gate * up, last.t())));
  EXPECT_TRUE(are_close(project.mlp(relu, x_, plain), at::mm(gate, last.t())));
  gated.down.adapters = {adapter()};
  EXPECT_TRUE(
      are_close(project.mlp(relu, x_, gated), at::mm(gate * up, last.t()) + of_adapter(gate * up)));
}

// With an adapter and without, which go different ways.
TEST_F(ProjectorTest, RanksHaveTheirOwnColumnsUntilTheyAreJoined) {
  const auto cut = std::make_shared<const ColumnCut>(4, 1, 2);
  for (const bool adapted : {false, true}) {
    at::Tensor inner = at::mm(x_, first_.t());
    if (adapted) inner = inner + of_adapter(x_);
    at::Tensor outer = at::mm(inner, second_.t());
    if (adapted) outer = outer + of_adapter(inner);
    testing::on_each_rank(2, PassCut::kOutputs, [&](const PassTeam& team) {
      const auto own_part = [&](const at::Tensor& weight) {
        bound::Projection layers = testing::frozen_projection({team.own_rows(weight, *cut)});
        layers.bases[0].cut = cut;
        if (adapted) layers.adapters = {adapter()};
        return layers;
      };
      kernel::ThreadPool pool(1);
      const Projector project({pool, {}, &team}, std::nullopt, nullptr);
      const at::Tensor own = project.own(x_, {}, own_part(first_))[0];
      EXPECT_TRUE(are_close(own, team.own_columns(inner, *cut))) << adapted;
      EXPECT_TRUE(are_close(project.joined(own, cut, own_part(second_)), outer)) << adapted;
    });
  }
}

TEST_F(ProjectorTest, ARankWithoutRowsComputesWhereOthersHaveSome) {
  const Projector alone(pass_, std::nullopt, nullptr);
  EXPECT_FALSE(alone.any(0));
  EXPECT_TRUE(alone.any(3));
  const auto of_others = std::make_shared<const ColumnCut>(ColumnCut::of_sizes({0, 5}));
  EXPECT_TRUE(alone.with(of_others).any(0));
  const auto nowhere = std::make_shared<const ColumnCut>(ColumnCut::of_sizes({0, 0}));
  EXPECT_FALSE(alone.with(nowhere).any(0));
}

}  // namespace
}  // namespace rl
