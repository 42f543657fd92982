#include "rl/model/tensor_list.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cstring>

namespace rl {
namespace {

TEST(TensorList, ComesBackAsItWas) {
  const at::Tensor matrix = at::arange(6, at::kFloat).view({2, 3});
  const at::Tensor leaf = at::arange(4, at::kFloat).requires_grad_(true);
  const std::vector<at::Tensor> given = {matrix.t(), {}, leaf, at::empty({0, 5}), at::empty({})};
  const auto back = decode_tensors(encode_tensors(given));
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  ASSERT_EQ(back->size(), given.size());
  EXPECT_TRUE(at::equal((*back)[0], matrix.t()));
  EXPECT_FALSE((*back)[1].defined());
  EXPECT_TRUE((*back)[2].requires_grad());
  EXPECT_TRUE((*back)[2].is_leaf());
  EXPECT_FALSE((*back)[0].requires_grad());
  EXPECT_EQ((*back)[3].sizes(), at::IntArrayRef({0, 5}));
  EXPECT_EQ((*back)[4].dim(), 0);
  EXPECT_TRUE(decode_tensors({})->empty());
}

TEST(TensorList, OtherBytesAreRefused) {
  const std::vector<at::Tensor> given = {at::arange(6, at::kFloat).view({2, 3})};
  const std::vector<std::byte> bytes = encode_tensors(given);
  for (std::size_t size = 1; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_tensors(std::span(bytes).first(size)).ok()) << size;
  std::vector<std::byte> huge = bytes;
  const std::int64_t rows = std::int64_t{1} << 62;
  std::memcpy(huge.data() + 2 * sizeof rows, &rows, sizeof rows);
  EXPECT_FALSE(decode_tensors(huge).ok());
}

}  // namespace
}  // namespace rl
