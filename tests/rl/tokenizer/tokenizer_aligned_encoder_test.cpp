// Encoding with offsets around a model that has one token a byte, and the memory of such calls.
#include "rl/tokenizer/aligned_encoder.h"

#include <gtest/gtest.h>

#include "tests/rl/tokenizer/fake_parts.h"

namespace rl {
namespace {

using testing::ByteModel;

TEST(AlignedEncoder, KnowsWhereTokensAndAddedTokensAre) {
  const ByteModel model;
  ScratchPool pool;
  auto added = AddedTokens::make({{.id = 500, .content = "<s>", .strip_right = true}}, nullptr);
  ASSERT_TRUE(added.ok()) << added.status().to_string();
  ScratchPool::Borrowed borrowed = pool.take(model);
  AlignedEncoder encoder(*added, nullptr, nullptr, model, *borrowed);
  ASSERT_TRUE(encoder.encode("a<s> b").ok());
  EXPECT_EQ(encoder.ids, (std::vector<std::int32_t>{'a', 500, 'b'}));
  ASSERT_EQ(encoder.offsets.size(), 3u);
  EXPECT_EQ(encoder.offsets[1].begin, 1u);
  EXPECT_EQ(encoder.offsets[1].end, 5u);  // with the white space that it takes
  EXPECT_EQ(encoder.offsets[2].begin, 5u);
  encoder.trim_offsets(/*add_prefix_space=*/false);
  EXPECT_EQ(encoder.offsets[1].end, 4u);
}

TEST(ScratchPool, GivesOutWhatWasGivenBack) {
  const ByteModel model;
  ScratchPool pool;
  const EncodeScratch* first = nullptr;
  {
    ScratchPool::Borrowed one = pool.take(model), other = pool.take(model);
    first = &*one;
    EXPECT_NE(first, &*other);
  }
  EXPECT_EQ(model.scratches, 2);
  ScratchPool::Borrowed again = pool.take(model);
  EXPECT_EQ(&*again, first);
  EXPECT_EQ(model.scratches, 2);
}

}  // namespace
}  // namespace rl
