#include <gtest/gtest.h>

#include <vector>

#include "rl/plan/memory_plan.h"
#include "tests/rl/plan/small_config.h"

namespace rl {
namespace {

std::int64_t matrices_bytes(MemoryOptions options) {
  options.orthogonalizes = true;
  for (const MemoryPart& part : training_memory(small_config(), options))
    if (part.name == kMatricesPart) return part.bytes;
  return -1;
}

// The largest matrices have 16 x 8 elements. With one go its next iterate and two squares of
// its shorter side, and room for as much of another worker's.
TEST(MuonMemory, IsAMatrixWithWhatItsProductsNeed) {
  constexpr std::int64_t kAlone = 4 * (128 + 128 + 2 * 64);
  EXPECT_EQ(matrices_bytes({}), kAlone);
  EXPECT_EQ(matrices_bytes({.workers = 2}), kAlone + 4 * 128);
  EXPECT_EQ(matrices_bytes({.workers = 2, .zero = ZeroLevel::kMoments}), kAlone + 4 * 128);
  const std::int64_t copy = 4 * weight_elements(small_config()) / 2;
  for (const ZeroLevel zero : {ZeroLevel::kGradients, ZeroLevel::kWeights})
    EXPECT_EQ(matrices_bytes({.workers = 2, .zero = zero}), kAlone + 4 * 128 + copy);
  EXPECT_EQ(matrices_bytes({.trained_elements = 100}), -1) << "those of an adapter are small";
  for (const MemoryPart& part : training_memory(small_config(), {}))
    EXPECT_NE(part.name, kMatricesPart) << "of other optimizers";
}

TEST(MuonMemory, IsThereWhenPassesAreNot) {
  const std::vector<MemoryPart> parts = {
      {"weights", 100}, {"activations", 30}, {kMatricesPart, 20}};
  EXPECT_EQ(bytes_in_calls(parts), 30);
  EXPECT_EQ((RoleMemory{.role = "worker", .parts = parts}).total(), 130);
  const std::vector<MemoryPart> more = {{"weights", 100}, {"activations", 30}, {kMatricesPart, 50}};
  EXPECT_EQ((RoleMemory{.role = "worker", .parts = more}).total(), 150);
}

}  // namespace
}  // namespace rl
