#include "runtime/call/object_view.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace runtime {
namespace {

/// An object with the value, whose bytes begin `offset` bytes after a multiple of 64.
template <class T>
ObjectStatePtr object_of(const T& value, std::size_t offset = 0) {
  Encoder encoder;
  encode_value(encoder, value);
  const Buffer encoded = encoder.to_buffer();
  std::byte* writable = nullptr;
  const Buffer block = Buffer::allocate((64 << 10) + encoded.size(), &writable);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(writable) % 64, 0u);
  std::copy(encoded.bytes().begin(), encoded.bytes().end(), writable + offset);
  ObjectValue object;
  object.bytes = block.slice(offset, encoded.size());
  return ObjectState::ready(nullptr, std::move(object));
}

bool is_aligned(const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 64 == 0; }

TEST(ObjectViewTest, AnArrayIsReadInPlace) {
  const ObjectStatePtr object = object_of(std::vector<float>(20'000, 1.5f));
  Result<ArrayView<float>> view = view_of<std::vector<float>>(*object, Deadline::max());
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_EQ(view->size(), 20'000u);
  EXPECT_EQ((*view)[19'999], 1.5f);
  EXPECT_TRUE(is_aligned(view->data()));
  const std::span<const std::byte> bytes = object->value().bytes.bytes();
  const auto* first = reinterpret_cast<const std::byte*>(view->data());
  EXPECT_TRUE(first >= bytes.data() && first < bytes.data() + bytes.size()) << "it was copied";
}

TEST(ObjectViewTest, AnArrayThatLiesAnyhowIsAligned) {
  const ObjectStatePtr object = object_of(std::vector<float>{1, 2, 3}, 8);
  Result<ArrayView<float>> view = view_of<std::vector<float>>(*object, Deadline::max());
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_TRUE(is_aligned(view->data()));
  EXPECT_EQ(std::vector<float>(view->begin(), view->end()), (std::vector<float>{1, 2, 3}));
}

TEST(ObjectViewTest, AnEmptyArrayHasNoBytes) {
  const ObjectStatePtr object = object_of(std::vector<float>());
  Result<ArrayView<float>> view = view_of<std::vector<float>>(*object, Deadline::max());
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_EQ(view->size(), 0u);
}

TEST(ObjectViewTest, SpansPointIntoTheObjectWhichTheViewKeeps) {
  using Row = std::pair<std::string_view, std::span<const std::int32_t>>;
  const std::vector<std::int32_t> numbers{1, 2, 3};
  ObjectStatePtr object = object_of(Row("name", numbers), 8);
  Result<ObjectView<Row>> view = view_of<Row>(*object, Deadline::max());
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  object.reset();
  EXPECT_EQ((*view)->first, "name");
  const std::span<const std::int32_t> read = (*view)->second;
  EXPECT_EQ(std::vector<std::int32_t>(read.begin(), read.end()), numbers);
  EXPECT_TRUE(is_aligned(read.data()));
  EXPECT_TRUE(is_aligned((*view)->first.data()));
}

TEST(ObjectViewTest, AFailedObjectHasNoView) {
  const ObjectStatePtr object = ObjectState::failed(nullptr, not_found("x"));
  EXPECT_EQ(view_of<std::string_view>(*object, Deadline::max()).status(), not_found("x"));
}

TEST(ObjectViewTest, OtherBytesAreRefused) {
  const ObjectStatePtr object = object_of(std::string("abc"));
  EXPECT_EQ(view_of<std::vector<float>>(*object, Deadline::max()).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(view_of<std::string_view>(*object, Deadline::max()).status().code(),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace runtime
