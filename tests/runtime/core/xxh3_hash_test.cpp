#include "runtime/core/xxh3_hash.h"

#include <gtest/gtest.h>

#include <string>

namespace runtime {
namespace {

TEST(Xxh3HashTest, OfNothingIsTheOneThatXxhashGives) {
  EXPECT_EQ(Xxh3Hash().hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(Xxh3HashTest, PiecesAreWhatTheyAreTogether) {
  const std::string text(1000, 'x');
  Xxh3Hash whole, pieces;
  whole.add(text.data(), text.size());
  pieces.add(text.data(), 300);
  pieces.add(text.data() + 300, 700);
  EXPECT_EQ(whole.hex(), pieces.hex());
  pieces.add("y", 1);
  EXPECT_NE(whole.hex(), pieces.hex());
}

}  // namespace
}  // namespace runtime
