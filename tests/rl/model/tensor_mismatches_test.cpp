#include "rl/model/tensor_mismatches.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

TEST(TensorMismatches, AreOneMessageOfAllKinds) {
  TensorMismatches mismatches;
  EXPECT_TRUE(mismatches.status("weights").ok());
  mismatches.unexpected = {"d"};
  mismatches.missing = {"a", "b"};
  mismatches.add_misshaped("c", {2}, {3, 4});
  mismatches.add_misshaped("e", {}, {1});
  const runtime::Status status = mismatches.status("weights");
  EXPECT_EQ(status.code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "weights: missing a, b; of the wrong shape c [2] instead of [3, 4], e [] instead of "
            "[1]; unexpected d");
}

TEST(TensorMismatches, OfManyTheRestIsCounted) {
  TensorMismatches eight, twenty;
  for (int i = 0; i < 20; ++i) {
    if (i < 8) eight.missing.push_back(std::to_string(i));
    twenty.missing.push_back(std::to_string(i));
  }
  EXPECT_EQ(eight.status("w").message(), "w: missing 0, 1, 2, 3, 4, 5, 6, 7");
  EXPECT_EQ(twenty.status("w").message(), "w: missing 0, 1, 2, 3, 4, 5, 6, 7 and 12 more");
}

}  // namespace
}  // namespace rl
