#include "rl/optim/layer_pulse.h"

#include <gtest/gtest.h>

#include <memory>

namespace rl {
namespace {

TEST(LayerPulse, EachLayerOfAPassIsAStepThatSaysWhere) {
  const std::unique_ptr<Communicator> alone = make_single_communicator();
  LayerPulse pulse(*alone);
  const std::uint64_t before = alone->pulse().steps;
  pulse.before_forward(-1);
  EXPECT_EQ(alone->pulse().where, "the embeddings");
  pulse.before_forward(0);
  EXPECT_EQ(alone->pulse().where, "layer 0");
  pulse.before_backward(3);
  EXPECT_EQ(alone->pulse().where, "backward of layer 3");
  EXPECT_EQ(alone->pulse().steps, before + 3);
  EXPECT_FALSE(alone->pulse().waiting);
}

}  // namespace
}  // namespace rl
