// Encoding with offsets around a model that has one token a byte, and the memory of such calls.
#include "rl/tokenizer/aligned_encoder.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

class ByteModel final : public TokenModel {
 public:
  ByteModel() : TokenModel(Vocabulary()) {}
  std::string_view kind() const override { return "bytes"; }
  std::unique_ptr<ModelScratch> make_scratch() const override {
    ++scratches;
    return std::make_unique<ModelScratch>();
  }
  void encode(std::string_view piece, ModelScratch&,
              std::vector<std::int32_t>& ids) const override {
    for (const char c : piece) ids.push_back(static_cast<unsigned char>(c));
  }
  void encode_ranges(std::string_view piece, ModelScratch& scratch, std::vector<std::int32_t>& ids,
                     std::vector<Piece>& ranges) const override {
    encode(piece, scratch, ids);
    for (std::uint32_t i = 0; i < piece.size(); ++i) ranges.push_back({i, i + 1});
  }

  mutable int scratches = 0;
};

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
