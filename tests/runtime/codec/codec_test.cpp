#include "runtime/codec/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "runtime/call/object_ref.h"
#include "runtime/codec/array_view.h"

namespace runtime {
namespace {

template <class T>
Buffer encoded(const T& value) {
  Encoder encoder;
  encode_value(encoder, value);
  return encoder.to_buffer();
}

template <class T>
Result<T> decoded(Buffer bytes) {
  Decoder decoder(std::move(bytes));
  return decode_all<T>(decoder);
}

template <class T>
void expect_round_trip(const T& value) {
  Result<T> back = decoded<T>(encoded(value));
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(*back, value);
}

enum class Colour : std::uint8_t { kRed = 1, kBlue = 7 };

struct Point {
  double x = 0;
  double y = 0;
  auto fields() { return std::tie(x, y); }
  bool operator==(const Point&) const = default;
};

struct Sample {
  std::string text;
  std::vector<float> scores;
  std::map<std::string, std::vector<Point>> shapes;
  std::optional<Colour> colour;
  auto fields() { return std::tie(text, scores, shapes, colour); }
  bool operator==(const Sample&) const = default;
};

struct Empty {
  auto fields() { return std::tie(); }
  bool operator==(const Empty&) const = default;
};

struct Tree {
  int value = 0;
  std::vector<Tree> children;
  auto fields() { return std::tie(value, children); }
  bool operator==(const Tree&) const = default;
};

TEST(Codec, RoundTripsNumbers) {
  expect_round_trip(true);
  expect_round_trip<std::int8_t>(-128);
  expect_round_trip<std::uint16_t>(65535);
  expect_round_trip<std::int64_t>(std::numeric_limits<std::int64_t>::min());
  expect_round_trip(3.25F);
  expect_round_trip(-0.0);
  expect_round_trip(std::numeric_limits<double>::infinity());
  expect_round_trip('x');
  expect_round_trip(Colour::kBlue);
  Result<double> nan = decoded<double>(encoded(std::nan("")));
  ASSERT_TRUE(nan.ok());
  EXPECT_TRUE(std::isnan(*nan));
}

TEST(Codec, RoundTripsTextShortAndLong) {
  expect_round_trip(std::string());
  expect_round_trip(std::string("with a \0 zero", 13));
  for (std::size_t size :
       {1ul, 127ul, 128ul, kLargeArrayBytes - 1, kLargeArrayBytes, kLargeArrayBytes + 1}) {
    expect_round_trip(std::string(size, 'q'));
  }
}

TEST(Codec, RoundTripsContainers) {
  expect_round_trip(std::vector<int>{});
  expect_round_trip(std::vector<int>{1, -2, 3});
  expect_round_trip(std::vector<bool>{true, false, true});
  expect_round_trip(std::vector<std::string>{"a", "", "ccc"});
  expect_round_trip(std::vector<std::vector<double>>{{1}, {}, {2, 3}});
  expect_round_trip(std::array<std::string, 2>{"x", "y"});
  expect_round_trip(std::pair(1, std::string("one")));
  expect_round_trip(std::tuple(1, 2.5, std::string("three"), std::vector<std::uint8_t>{4}));
  expect_round_trip(std::map<std::string, int>{{"a", 1}, {"b", 2}});
  expect_round_trip(std::unordered_map<int, std::string>{{1, "x"}, {2, "y"}});
  expect_round_trip(std::set<int>{3, 1, 2});
  expect_round_trip(std::unordered_set<std::string>{"p", "q"});
  expect_round_trip(std::optional<int>{});
  expect_round_trip(std::optional<std::vector<float>>{{1.5F}});
  expect_round_trip(std::variant<int, std::string>("second"));
  expect_round_trip(std::chrono::milliseconds(1500));
  expect_round_trip(std::filesystem::path("/a/b c"));
  expect_round_trip(ActorId::random());
  expect_round_trip(std::pair(not_found("nothing"), Status()));
}

TEST(Codec, RoundTripsStructs) {
  expect_round_trip(Point{1, -2});
  expect_round_trip(Sample{"t", {1, 2}, {{"square", {{0, 0}, {1, 1}}}}, Colour::kRed});
  expect_round_trip(Empty{});
  expect_round_trip(std::vector<Empty>(5));
  expect_round_trip(Tree{1, {{2, {}}, {3, {{4, {}}}}}});
}

TEST(Codec, AlignsLargeArraysTo64SoThatTheyCanBeUsedInPlace) {
  std::vector<float> values(kLargeArrayBytes / sizeof(float) + 3);
  std::iota(values.begin(), values.end(), 0.0F);
  Buffer bytes = encoded(std::tuple(std::string("shifts what follows"), values));
  Result<std::tuple<std::string, ArrayView<float>>> back =
      decoded<std::tuple<std::string, ArrayView<float>>>(bytes);
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  const auto& view = std::get<1>(*back);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data()) % 64, 0u);
  EXPECT_GE(reinterpret_cast<const std::byte*>(view.data()), bytes.data());
  EXPECT_LE(reinterpret_cast<const std::byte*>(view.data() + view.size()),
            bytes.data() + bytes.size());
  EXPECT_EQ(view.to_vector(), values);
}

TEST(Codec, ArrayViewOutlivesTheDecoderAndTheBuffer) {
  std::vector<int> values(100'000, 42);
  Result<ArrayView<int>> view = decoded<ArrayView<int>>(encoded(values));
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->to_vector(), values);
}

TEST(Codec, BorrowsLargeArraysUntilTheBytesAreTaken) {
  std::vector<int> values(100'000, 1);
  Encoder encoder;
  encode_value(encoder, values);
  values[7] = 2;  // seen, because nothing was copied yet
  Result<std::vector<int>> back = decoded<std::vector<int>>(encoder.to_buffer());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ((*back)[7], 2);
}

TEST(Codec, RefusesEveryTruncationAndExcess) {
  Sample sample{"text", {1, 2, 3}, {{"s", {{1, 2}}}}, Colour::kBlue};
  Buffer whole = encoded(sample);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Result<Sample> back = decoded<Sample>(whole.slice(0, size));
    ASSERT_FALSE(back.ok()) << "of " << size << " bytes";
    EXPECT_EQ(back.status().code(), ErrorCode::kInvalidArgument);
  }
  std::string longer(whole.text());
  longer += '\0';
  EXPECT_FALSE(decoded<Sample>(Buffer::copy_of(longer)).ok());
}

TEST(Codec, RefusesCountsThatTheBytesCannotHold) {
  Encoder encoder;
  encoder.write_length(std::uint64_t{1} << 60);
  EXPECT_FALSE(decoded<std::vector<std::string>>(encoder.to_buffer()).ok());
  Encoder array;
  array.write(std::uint64_t{1} << 61);  // times eight overflows 64 bits
  EXPECT_FALSE(decoded<std::vector<double>>(array.to_buffer()).ok());
  EXPECT_FALSE(decoded<bool>(Buffer::copy_of(std::string_view("\x02", 1))).ok());
  EXPECT_FALSE(
      (decoded<std::variant<int, bool>>(Buffer::copy_of(std::string_view("\x02\x00", 2))).ok()));
}

TEST(Codec, RefusesTooDeepNesting) {
  Tree root;
  Tree* at = &root;
  for (int i = 1; i < kDecodeDepthMax; ++i) at = &at->children.emplace_back();
  expect_round_trip(root);
  at->children.emplace_back();
  Result<Tree> back = decoded<Tree>(encoded(root));
  ASSERT_FALSE(back.ok());
  EXPECT_NE(back.status().message().find("deeper"), std::string::npos) << back.status().message();
}

TEST(Codec, RefusesReferencesOutsideOfTheTable) {
  Encoder encoder;
  encode_value(encoder, true);
  encoder.write_length(3);
  Result<ObjectRef<int>> back = decoded<ObjectRef<int>>(encoder.to_buffer());
  ASSERT_FALSE(back.ok());
  EXPECT_NE(back.status().message().find("reference 3"), std::string::npos)
      << back.status().message();
}

TEST(Codec, RefsTravelAsIndicesIntoATable) {
  auto state = ObjectState::failed(nullptr, not_found("x"));
  Encoder encoder;
  encode_value(encoder, std::vector<ObjectRef<int>>{ObjectRef<int>(), ObjectRef<int>(state)});
  Decoder decoder(encoder.to_buffer(), encoder.refs());
  auto back = decode_all<std::vector<ObjectRef<int>>>(decoder);
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_FALSE((*back)[0].is_valid());
  EXPECT_EQ((*back)[1].state(), state);
}

TEST(Codec, RandomBytesNeverCrash) {
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 4);
    (void)decoded<Sample>(Buffer::copy_of(bytes)).ok();
    (void)decoded<std::vector<Tree>>(Buffer::copy_of(bytes)).ok();
    (void)decoded<std::map<std::string, std::variant<int, std::vector<bool>>>>(
        Buffer::copy_of(bytes))
        .ok();
  }
}

}  // namespace
}  // namespace runtime
