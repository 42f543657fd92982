#include "rl/model/gradient_arena.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

#include "rl/model/ops.h"

namespace rl {
namespace {

constexpr std::int64_t kRows = 64;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A table of kRows rows of 2, and a vector.
class GradientArenaTest : public ::testing::Test {
 protected:
  static std::vector<ParameterSpec> layout() {
    return {{.name = "table", .shape = {kRows, 2}, .offset = 0, .count = kRows * 2},
            {.name = "vector", .shape = {2}, .offset = kRows * 2, .count = 2}};
  }
  ops::Weight weight(const std::string& name) {
    const at::Tensor view = arena_.memory().view(name);
    return {at::zeros(view.sizes()), view, arena_.sum_of(view)};
  }
  at::Tensor memory(const std::string& name) const { return arena_.memory().view(name); }

  GradientArena arena_{Parameters::zeros(layout())};
};

TEST_F(GradientArenaTest, ASumBeginsByOverwritingTheOneBefore) {
  const ops::Weight vector = weight("vector");
  for (int update = 0; update < 2; ++update) {
    vector.add_gradient(at::arange(2));
    vector.add_gradient_of_rows(at::ones({3, 2}));
    EXPECT_TRUE(arena_.settled().view("vector").equal(at::arange(2) + 3));
    arena_.forget();
    EXPECT_TRUE(memory("vector").equal(at::arange(2) + 3)) << "no pass over the memory";
  }
  memory("vector").fill_(kNaN);  // as a step that went wrong leaves it
  vector.add_gradient(at::ones({2}));
  EXPECT_TRUE(arena_.settled().view("vector").equal(at::ones({2})));
}

TEST_F(GradientArenaTest, WhatNoPassHasWrittenSinceIsZero) {
  const ops::Weight vector = weight("vector");
  vector.add_gradient(at::ones({2}));
  arena_.forget();
  EXPECT_TRUE(arena_.settled().view("vector").equal(at::zeros({2})));
  arena_.forget();
  memory("vector").fill_(7);  // nothing was added, so that nothing is to be zeroed
  EXPECT_TRUE(arena_.settled().view("vector").equal(at::full({2}, 7)));
}

// As a sum over ranks in place leaves it.
TEST_F(GradientArenaTest, WhatOthersWroteIsZeroedToo) {
  const ops::Weight vector = weight("vector");
  const ops::Weight table = weight("table");
  arena_.settled();
  arena_.overwritten();
  memory("vector").fill_(7);
  memory("table").fill_(7);
  arena_.forget();
  EXPECT_TRUE(arena_.settled().view("vector").equal(at::zeros({2})));
  EXPECT_TRUE(arena_.settled().view("table").equal(at::zeros({kRows, 2})));
}

TEST_F(GradientArenaTest, OfATableOnlyTheRowsThatWereWrittenAreZeroed) {
  const ops::Weight table = weight("table");
  table.sum->begin_rows({3, 5});
  memory("table")[3].fill_(1);
  memory("table")[5].fill_(1);
  arena_.forget();
  memory("table")[9].fill_(7);  // would be zeroed if all were
  table.sum->begin_rows({5});
  EXPECT_TRUE(memory("table")[3].equal(at::zeros({2})));
  EXPECT_TRUE(memory("table")[5].equal(at::zeros({2}))) << "rows are added to";
  EXPECT_TRUE(memory("table")[9].equal(at::full({2}, 7)));
  table.sum->begin_rows({6});
  memory("table")[5].fill_(2);
  memory("table")[6].fill_(2);
  arena_.forget();
  (void)arena_.settled();
  EXPECT_TRUE(memory("table").slice(0, 0, 9).equal(at::zeros({9, 2})));
}

TEST_F(GradientArenaTest, ATableThatIsAlsoTheOutputLayerIsWrittenWhole) {
  const ops::Weight table = weight("table"), output = weight("table");
  EXPECT_EQ(table.sum, output.sum) << "views of the same parameter have one sum";
  for (int update = 0; update < 2; ++update) {
    output.add_gradient(at::ones({kRows, 2}));
    table.sum->begin_rows({1});
    EXPECT_TRUE(memory("table").equal(at::ones({kRows, 2}))) << "not zeroed in between";
    arena_.forget();
  }
  table.sum->begin_rows({1});
  EXPECT_TRUE(memory("table").equal(at::zeros({kRows, 2})));
}

TEST_F(GradientArenaTest, MemoryThatIsGivenBackIsNotTouched) {
  const ops::Weight vector = weight("vector");
  vector.add_gradient(at::ones({2}));
  arena_.forget();
  arena_.drop();
  memory("vector").fill_(7);  // it belongs to others now
  EXPECT_TRUE(arena_.settled().view("vector").equal(at::full({2}, 7)));
  arena_.renew();
  EXPECT_TRUE(arena_.settled().arena().equal(at::zeros({arena_.memory().arena_size()})));
}

}  // namespace
}  // namespace rl
