#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rl/comm/communicator.h"
#include "rl/comm/thread_links.h"
#include "rl/model/bound_weights.h"
#include "rl/model/family.h"
#include "rl/model/pass_team.h"
#include "tests/rl/plan/small_config.h"

namespace rl {
namespace {

class WeightBinderTest : public ::testing::Test {
 protected:
  WeightBinder binder(GradientArena* gradients, const PassTeam* team = nullptr,
                      const RangeSet* trained = nullptr) const {
    return {config_, plan_, values_, gradients, no_adapter_, team, trained};
  }
  const std::string& name(ParameterIndex index) const {
    return plan_.parameters[static_cast<std::size_t>(index)].name;
  }
  // The place of what a view shows in the arena that it is a view of.
  static std::int64_t place(const at::Tensor& view) { return view.storage_offset(); }

  const ModelConfig config_ = small_config();
  const ModelPlan plan_ = plan_of(config_);
  const Parameters values_ = Parameters::random(config_, 1);
  GradientArena gradients_{Parameters::zeros(config_)};
  const std::optional<BoundAdapter> no_adapter_;
  const LinearPlan up_ = plan_.layers[1].mlp.up;  // [16, 8]
};

TEST_F(WeightBinderTest, WeightsAreViewsOfTheArena) {
  const bound::Linear up = binder(nullptr).linear(up_);
  EXPECT_EQ(up.weight.value.data_ptr(), values_.view(name(up_.weight)).data_ptr());
  EXPECT_EQ(up.weight.value.size(0), 16);
  EXPECT_FALSE(up.weight.trained()) << "without gradients nothing is";
  EXPECT_FALSE(up.bias.value.defined());
  EXPECT_EQ(up.cut, nullptr);
  const LinearPlan part = up_.part(4, 3);
  const bound::Linear rows = binder(nullptr).linear(part);
  EXPECT_EQ(rows.weight.value.size(0), 3);
  EXPECT_EQ(place(rows.weight.value), place(up.weight.value) + 4 * 8);
}

TEST_F(WeightBinderTest, GradientsStandWhereTheirWeightsDo) {
  const WeightBinder all = binder(&gradients_);
  const bound::Weight weight = all.weight(up_.weight), again = all.weight(up_.weight);
  ASSERT_TRUE(weight.trained());
  EXPECT_EQ(place(weight.grad), place(weight.value));
  EXPECT_EQ(weight.grad.sizes(), weight.value.sizes());
  EXPECT_EQ(weight.grad.data_ptr(), gradients_.memory().view(name(up_.weight)).data_ptr());
  EXPECT_EQ(weight.sum, again.sum) << "of a weight that is read twice there is one sum";
  EXPECT_FALSE(all.weight(kNoParameter).value.defined());
}

TEST_F(WeightBinderTest, OnlyWhatIsTrainedHasGradients) {
  const ParameterSpec& spec = values_.specs()[static_cast<std::size_t>(up_.weight)];
  const RangeSet trained{{spec.offset, spec.offset + spec.count}};
  const WeightBinder some = binder(&gradients_, nullptr, &trained);
  EXPECT_TRUE(some.linear(up_).weight.trained());
  EXPECT_FALSE(some.linear(plan_.layers[0].mlp.up).weight.trained());
  EXPECT_FALSE(some.norm(plan_.last_norm).weight.trained());
}

TEST_F(WeightBinderTest, AProjectionHasTheLayersThatThereAre) {
  const bound::Projection in = binder(nullptr).projection({up_, LinearPlan(), up_.part(0, 2)});
  ASSERT_EQ(in.bases.size(), 2u);
  EXPECT_EQ(in.bases[1].weight.value.size(0), 2);
  EXPECT_FALSE(in.adapted());
  EXPECT_FALSE(in.shared());
  EXPECT_FALSE(bound::exists(binder(nullptr).projection({LinearPlan()})));
  const bound::Layer layer = binder(nullptr).layer(plan_.layers[0]);
  EXPECT_EQ(layer.attention.qkv.bases.size(), 3u);
  EXPECT_EQ(layer.mlp.in.bases.size(), 2u);
  EXPECT_FALSE(bound::exists(layer.attention.q_norm)) << "a Llama has none";
  EXPECT_FALSE(bound::exists(layer.attention.down));
  EXPECT_FALSE(layer.experts);
}

TEST_F(WeightBinderTest, RanksThatDivideOutputsHaveTheirOwnRows) {
  auto links = make_thread_links(2);
  for (std::size_t rank = 0; rank < links.size(); ++rank) {
    Communicator communicator(std::move(links[rank]));
    const PassTeam team(communicator, PassCut::kOutputs);
    const bound::Linear up = binder(&gradients_, &team).linear(up_);
    ASSERT_NE(up.cut, nullptr);
    EXPECT_EQ(up.dealt, nullptr);
    EXPECT_EQ(up.weight.value.size(0), 8);
    EXPECT_EQ(up.weight.grad.size(0), 8);
    const std::int64_t whole = place(values_.view(name(up_.weight)));
    EXPECT_EQ(place(up.weight.value), whole + static_cast<std::int64_t>(rank) * 8 * 8);
    EXPECT_EQ(place(up.weight.grad), place(up.weight.value));
    const bound::Norm norm = binder(&gradients_, &team).norm(plan_.last_norm);
    EXPECT_EQ(norm.weight.value.size(0), 8) << "norms are whole";
  }
}

TEST_F(WeightBinderTest, RanksThatDivideRowsReadAllAndAddTheirOwn) {
  auto links = make_thread_links(2);
  Communicator communicator(std::move(links[1]));
  const PassTeam team(communicator, PassCut::kRows);
  const bound::Linear up = binder(&gradients_, &team).linear(up_);
  EXPECT_EQ(up.cut, nullptr);
  ASSERT_NE(up.dealt, nullptr);
  EXPECT_EQ(up.weight.value.size(0), 16);
  EXPECT_EQ(up.weight.grad.size(0), 8);
  EXPECT_EQ(place(up.weight.grad), place(up.weight.value) + 8 * 8);
  const auto [table, cut] = binder(&gradients_, &team).vocabulary(plan_.embedding);
  ASSERT_NE(cut, nullptr);
  EXPECT_EQ(cut->total(), 32);
  EXPECT_EQ(table.value.size(0), 32);
  EXPECT_EQ(table.grad.size(0), cut->size(1));
}

}  // namespace
}  // namespace rl
