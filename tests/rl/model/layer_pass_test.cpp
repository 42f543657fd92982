#include "rl/model/layer_pass.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/model/pass_team.h"
#include "tests/rl/model/bound_layers.h"

namespace rl {
namespace {

at::Tensor one_row(const std::vector<double>& numbers) {
  return at::tensor(numbers, at::kFloat).unsqueeze(0);
}

// Projects queries to the row, keys and values to its beginning; its MLP gives zeros.
bound::Layer plain_layer(const ModelConfig& config) {
  const std::int64_t width = config.hidden_size;
  const at::Tensor one = at::eye(width);
  bound::Layer layer;
  layer.attention.qkv = testing::frozen_projection(
      {one, one.narrow(0, 0, config.kv_size()), one.narrow(0, 0, config.kv_size())});
  layer.attention.o = testing::frozen_projection({one});
  layer.mlp = {testing::frozen_projection({at::zeros({1, width})}),
               testing::frozen_projection({at::zeros({width, 1})})};
  return layer;
}

// A layer of rows at the first position, where nothing turns, with attention that a test plays.
class LayerPassTest : public ::testing::Test {
 protected:
  LayerPassTest() {
    config_.hidden_size = 8;
    config_.layers = 2;
    config_.heads = 2;
    config_.kv_heads = 1;
    config_.head_dim = 4;
    config_.windows = {0, 16};
  }

  at::Tensor outputs(const bound::Layer& layer, const at::Tensor& x, std::int64_t index = 0) {
    PackedBatch batch;
    for (std::int64_t row = 0; row < x.size(0); ++row) batch.append(std::vector<std::int32_t>{1});
    const Rope rope(config_.rope, config_.rotated());
    const forward::RowsPtr rows =
        std::make_shared<const forward::Rows>(batch, rope, /*share=*/false);
    const std::optional<DropoutPass> no_dropout;
    const Attend attend = [this](std::int64_t of_layer, const forward::AttentionShape& shape,
                                 const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
      layer_ = of_layer;
      shape_ = shape;
      q_ = q;
      k_ = k;
      v_ = v;
      return attended_(q, v);
    };
    return LayerPass(config_, pass_, no_dropout, rows, attend).layer(index, layer, x);
  }

  kernel::ThreadPool pool_{1};
  const PassContext pass_{pool_, {}};
  ModelConfig config_;
  std::function<at::Tensor(const at::Tensor& q, const at::Tensor& v)> attended_ =
      [](const at::Tensor& q, const at::Tensor&) { return at::full_like(q, 3.0); };

  // What attention was asked for last.
  std::int64_t layer_ = -1;
  forward::AttentionShape shape_;
  at::Tensor q_, k_, v_;
};

TEST_F(LayerPassTest, AttentionHasTheRowsProjectionsAndTheLayersShape) {
  const at::Tensor x = one_row({1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(outputs(plain_layer(config_), x, 1).equal(x + 3)) << "added to the row";
  EXPECT_EQ(layer_, 1);
  EXPECT_EQ(shape_.heads, 2);
  EXPECT_EQ(shape_.kv_heads, 1);
  EXPECT_EQ(shape_.window, 16);
  EXPECT_TRUE(q_.equal(x));
  EXPECT_TRUE(k_.equal(x.narrow(1, 0, 4)));
  EXPECT_TRUE(v_.equal(x.narrow(1, 0, 4)));
}

TEST_F(LayerPassTest, NormsStandWhereTheConfigSays) {
  const at::Tensor x = one_row({1, 2, 3, 4, 5, 6, 7, 8});
  const auto rms = [](const at::Tensor& t) {
    return t * at::rsqrt((t * t).mean(1, /*keepdim=*/true) + 1e-6);
  };
  bound::Layer layer = plain_layer(config_);
  layer.attention_norm_after = layer.mlp_norm_after = testing::frozen_rms(at::ones({8}));
  config_.norm_place = NormPlace::kAfter;
  EXPECT_TRUE(at::allclose(outputs(layer, x), rms(x + 3), 1e-5, 1e-5)) << "of the sum";
  EXPECT_TRUE(q_.equal(x));
  config_.norm_place = NormPlace::kBoth;
  layer.attention_norm = layer.mlp_norm = testing::frozen_rms(at::ones({8}));
  EXPECT_TRUE(at::allclose(outputs(layer, x), x + 1, 1e-5, 1e-5)) << "of what is added";
  EXPECT_TRUE(at::allclose(q_, rms(x), 1e-5, 1e-5)) << "and of the row before";
}

TEST_F(LayerPassTest, EachHeadOfQueriesAndKeysHasItsOwnNorm) {
  config_.query_key_norm = true;
  bound::Layer layer = plain_layer(config_);
  layer.attention.q_norm = layer.attention.k_norm = testing::frozen_rms(at::ones({4}));
  outputs(layer, one_row({2, 2, 2, 2, 7, 7, 7, 7}));
  EXPECT_TRUE(at::allclose(q_, at::ones({1, 8}), 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(k_, at::ones({1, 4}), 1e-5, 1e-5));
  EXPECT_TRUE(v_.equal(at::full_like(v_, 2.0)));
}

// As pairs of the first and the second half, which is how they turn; what does not turn stays.
TEST_F(LayerPassTest, InterleavedPairsComeOutOfTheRotationSorted) {
  config_.hidden_size = 6;
  config_.heads = 1;
  config_.head_dim = 6;
  config_.rotary_dim = 4;
  config_.rope_interleaved = true;
  outputs(plain_layer(config_), one_row({10, 11, 20, 21, 5, 6}));
  const at::Tensor sorted = one_row({10, 20, 11, 21, 5, 6});
  EXPECT_TRUE(q_.equal(sorted));
  EXPECT_TRUE(k_.equal(sorted));
}

// A head of two dimensions without positions, two with them, and two of values.
TEST_F(LayerPassTest, LatentKeysAndValuesBecomeOrdinaryOnes) {
  config_.hidden_size = 4;
  config_.heads = 1;
  config_.rotary_dim = 2;
  config_.latent = LatentConfig{.query_rank = 0, .kv_rank = 2, .nope_dim = 2, .value_dim = 2};
  bound::Layer layer = plain_layer(config_);
  layer.attention.qkv = {};
  layer.attention.down = testing::frozen_projection({at::eye(4), at::eye(4)});
  layer.attention.kv_down_norm = testing::frozen_rms(at::ones({2}));
  layer.attention.kv_up = testing::frozen_projection(
      {at::tensor({1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 4.0}, at::kFloat).view({4, 2})});
  layer.attention.o = testing::frozen_projection({at::eye(4).narrow(1, 0, 2).contiguous()});
  attended_ = [](const at::Tensor&, const at::Tensor& v) { return v; };
  const at::Tensor x = one_row({5, 5, 6, 7});  // the latent, normed, is of ones
  const at::Tensor y = outputs(layer, x);
  EXPECT_TRUE(q_.equal(one_row({6, 7, 5, 5}))) << "what turns is first";
  EXPECT_TRUE(at::allclose(k_, one_row({6, 7, 1, 2}), 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(v_, one_row({3, 4, 0, 0}), 1e-5, 1e-5)) << "as wide as keys";
  EXPECT_TRUE(at::allclose(y, x + one_row({3, 4, 0, 0}), 1e-5, 1e-5));
}

TEST(OwnRows, AreDealtByATeamThatCutsRowsAlone) {
  PackedBatch batch;
  batch.append(std::vector<std::int32_t>(200, 1));
  const Rope rope({}, 4);
  const forward::Rows rows(batch, rope, /*share=*/false);
  auto links = make_thread_links(2);
  Communicator communicator(std::move(links[0]));
  EXPECT_EQ(own_rows(nullptr, rows), nullptr);
  const PassTeam of_outputs(communicator, PassCut::kOutputs);
  EXPECT_EQ(own_rows(&of_outputs, rows), nullptr);
  const PassTeam of_rows(communicator, PassCut::kRowsAndExperts);
  const auto dealt = own_rows(&of_rows, rows);
  ASSERT_NE(dealt, nullptr);
  EXPECT_EQ(dealt->total(), 200);
  EXPECT_EQ(dealt->ranks(), 2);
}

}  // namespace
}  // namespace rl
