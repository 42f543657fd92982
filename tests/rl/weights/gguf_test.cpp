#include "rl/weights/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "test_files.h"
#include "tests/rl/cached_smollm2.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Status;
using testing::raw;

std::string text(std::string_view value) {
  return raw(static_cast<std::uint64_t>(value.size())) + std::string(value);
}

std::string entry(std::string_view key, GgufType type, const std::string& value) {
  return text(key) + raw(static_cast<std::uint32_t>(type)) + value;
}

std::string array(GgufType type, std::uint64_t count, const std::string& elements) {
  return raw(static_cast<std::uint32_t>(type)) + raw(count) + elements;
}

std::string tensor(std::string_view name, std::vector<std::uint64_t> extents, std::uint32_t type,
                   std::uint64_t offset) {
  std::string bytes = text(name) + raw(static_cast<std::uint32_t>(extents.size()));
  for (std::uint64_t extent : extents) bytes += raw(extent);
  return bytes + raw(type) + raw(offset);
}

std::string preamble(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
  return "GGUF" + raw(version) + raw(tensors) + raw(entries);
}

std::string with_data(std::string header, const std::string& data) {
  header.resize((header.size() + 31) / 32 * 32);
  return header + data;
}

// A small good file: scalars of several types, two arrays, an F32 tensor of 2 x 3 and a Q8_0 tensor
// of 1 x 32.
std::string good_file() {
  std::string header = preamble(2, 6);
  header += entry("general.architecture", GgufType::kString, text("llama"));
  header += entry("a.count", GgufType::kU32, raw(30u));
  header += entry("a.epsilon", GgufType::kF32, raw(0.5f));
  header += entry("a.flag", GgufType::kBool, raw(std::uint8_t{1}));
  header += entry("a.tokens", GgufType::kArray,
                  array(GgufType::kString, 3, text("x") + text("") + text("yz")));
  header += entry("a.types", GgufType::kArray, array(GgufType::kI32, 2, raw(-1) + raw(7)));
  header += tensor("w", {3, 2}, 0, 0);
  header += tensor("q", {32, 1}, 8, 32);
  std::string data;
  for (float value : {1.f, 2.f, 3.f, 4.f, 5.f, 6.f}) data += raw(value);
  data.resize(32);
  data += raw(std::uint16_t{0x3800});  // 0.5
  for (int i = 0; i < 32; ++i) data += static_cast<char>(i - 16);
  return with_data(header, data);
}

runtime::Result<std::unique_ptr<GgufFile>> parse_gguf(const std::string& bytes) {
  return GgufFile::parse(std::as_bytes(std::span(bytes)), "m.gguf");
}

TEST(Gguf, ReadsMetadataOfEveryKind) {
  const std::string bytes = good_file();
  auto file = parse_gguf(bytes);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  const GgufFile& gguf = **file;
  EXPECT_EQ(gguf.entries().size(), 6u);
  EXPECT_EQ(*gguf.string("general.architecture"), "llama");
  EXPECT_EQ(*gguf.integer("a.count"), 30);
  EXPECT_EQ(*gguf.number("a.count"), 30.0);
  EXPECT_EQ(*gguf.number("a.epsilon"), 0.5);
  EXPECT_EQ(*gguf.boolean("a.flag"), true);
  EXPECT_EQ(*gguf.strings("a.tokens"), (std::vector<std::string_view>{"x", "", "yz"}));
  EXPECT_EQ(*gguf.integers("a.types"), (std::vector<std::int64_t>{-1, 7}));
  EXPECT_EQ(*gguf.numbers("a.types"), (std::vector<double>{-1, 7}));
}

TEST(Gguf, WrongTypesAndMissingKeysAreNamed) {
  const std::string bytes = good_file();
  auto file = parse_gguf(bytes);
  ASSERT_TRUE(file.ok());
  Status missing = (*file)->integer("no.key").status();
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_EQ(missing.message(), "m.gguf: metadata key no.key is missing");
  EXPECT_EQ((*file)->string("a.types").status().message(),
            "m.gguf: metadata key a.types is of type array of i32, not string");
  EXPECT_FALSE((*file)->integer("a.epsilon").ok());
  EXPECT_FALSE((*file)->boolean("a.count").ok());
  EXPECT_FALSE((*file)->integer("a.flag").ok());
  EXPECT_FALSE((*file)->strings("a.count").ok());
  EXPECT_FALSE((*file)->integers("a.tokens").ok());
}

TEST(Gguf, ReadsTensorsRowMajor) {
  const std::string bytes = good_file();
  auto file = parse_gguf(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->find("w")->shape, (std::vector<std::int64_t>{2, 3}));
  std::vector<float> w(6);
  ASSERT_TRUE((*file)->read_f32("w", w).ok());
  EXPECT_EQ(w, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ((*file)->find("q")->dtype, DType::kQ8_0);
  std::vector<float> q(32);
  ASSERT_TRUE((*file)->read_f32("q", q).ok());
  EXPECT_EQ(q[0], -8.0f);
  EXPECT_EQ(q[31], 7.5f);
  EXPECT_FALSE((*file)->read_f32_range("q", 16, std::span(q).first(16)).ok());  // half a block
}

TEST(GgufDamage, EveryTruncationIsAnError) {
  const std::string whole = good_file();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    auto file = parse_gguf(whole.substr(0, size));
    ASSERT_FALSE(file.ok()) << size;
    ASSERT_EQ(file.status().code(), ErrorCode::kInvalidArgument) << size;
  }
}

struct Bad {
  const char* what;
  std::string bytes;
  const char* mentions;
};

class GgufBad : public ::testing::TestWithParam<Bad> {};

TEST_P(GgufBad, IsRefusedByName) {
  Status status = parse_gguf(GetParam().bytes).status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(GetParam().mentions), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("m.gguf"), std::string::npos) << status.message();
}

constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;

std::string nested_arrays(int depth) {
  std::string value;
  for (int i = 0; i < depth; ++i)
    value += raw(static_cast<std::uint32_t>(GgufType::kArray)) + raw(std::uint64_t{1});
  return value + array(GgufType::kU8, 1, "x");
}

INSTANTIATE_TEST_SUITE_P(
    All, GgufBad,
    ::testing::Values(
        Bad{"magic", "GGML" + std::string(100, '\0'), "not a GGUF file"},
        Bad{"version_1", preamble(0, 0, 1), "version 1"},
        Bad{"big_endian", preamble(0, 0, 0x03000000), "big-endian"},
        Bad{"tensor_count", preamble(kHuge, 0) + std::string(100, '\0'), "tensors"},
        Bad{"entry_count", preamble(0, kHuge) + std::string(100, '\0'), "metadata entries"},
        Bad{"key_length", preamble(0, 1) + raw(kHuge) + std::string(20, 'x'), "metadata entry 0"},
        Bad{"key_length_wraps", preamble(0, 1) + raw(~std::uint64_t{0}) + std::string(20, 'x'),
            "metadata entry 0"},
        Bad{"key_not_ascii", preamble(0, 1) + entry("\xff\xfe", GgufType::kU8, "x"), "plain ASCII"},
        Bad{"value_type",
            preamble(0, 1) + entry("k", static_cast<GgufType>(13), std::string(20, 'x')), "key k"},
        Bad{"string_length", preamble(0, 1) + entry("k", GgufType::kString, raw(kHuge) + "x"),
            "key k"},
        Bad{"array_count",
            preamble(0, 1) + entry("k", GgufType::kArray, array(GgufType::kU8, kHuge, "x")),
            "key k"},
        Bad{"array_count_wraps",
            preamble(0, 1) + entry("k", GgufType::kArray, array(GgufType::kU64, kHuge * 8, "x")),
            "key k"},
        Bad{"array_of_unknown",
            preamble(0, 1) + entry("k", GgufType::kArray, array(static_cast<GgufType>(99), 1, "x")),
            "key k"},
        Bad{"array_of_lying_strings",
            preamble(0, 1) +
                entry("k", GgufType::kArray, array(GgufType::kString, 2, text("x") + raw(kHuge))),
            "key k"},
        Bad{"nested_too_deep", preamble(0, 1) + entry("k", GgufType::kArray, nested_arrays(100)),
            "too deeply"},
        Bad{"key_twice",
            preamble(0, 2) + entry("k", GgufType::kU8, "x") + entry("k", GgufType::kU8, "x"),
            "twice"},
        Bad{"alignment",
            preamble(1, 1) + entry("general.alignment", GgufType::kU32, raw(0u)) +
                tensor("w", {1}, 0, 0) + std::string(99, 'x'),
            "alignment"},
        Bad{"tensor_twice",
            with_data(preamble(2, 0) + tensor("w", {1}, 0, 0) + tensor("w", {1}, 0, 0), "data"),
            "twice"},
        Bad{"tensor_overlap",
            with_data(preamble(2, 0) + tensor("w", {9}, 0, 0) + tensor("v", {9}, 0, 32),
                      std::string(99, 'x')),
            "overlaps"},
        Bad{"tensor_dimensions",
            with_data(preamble(1, 0) + tensor("w", std::vector<std::uint64_t>(9, 1), 0, 0), "data"),
            "9 dim"},
        Bad{"tensor_huge", with_data(preamble(1, 0) + tensor("w", {kHuge}, 0, 0), "data"),
            "tensor w"},
        Bad{"tensor_overflows",
            with_data(preamble(1, 0) + tensor("w", {kHuge / 4, 64, 64}, 0, 0), "data"), "tensor w"},
        Bad{"tensor_negative",
            with_data(preamble(1, 0) + tensor("w", {~std::uint64_t{0}}, 0, 0), "data"), "tensor w"},
        Bad{"tensor_offset", with_data(preamble(1, 0) + tensor("w", {1}, 0, kHuge), "data"),
            "tensor w"},
        Bad{"tensor_unaligned",
            with_data(preamble(1, 0) + tensor("w", {1}, 0, 4), std::string(99, 'x')),
            "multiple of 32"},
        Bad{"tensor_part_block",
            with_data(preamble(1, 0) + tensor("w", {33}, 8, 0), std::string(99, 'x')), "blocks"},
        Bad{"tensor_type", with_data(preamble(1, 0) + tensor("w", {1}, 200, 0), "data"),
            "type 200"},
        Bad{"tensor_iq", with_data(preamble(1, 0) + tensor("w", {256}, 16, 0), "data"), "IQ2_XXS"}),
    [](const auto& test) { return std::string(test.param.what); });

TEST(Gguf, MissingFile) {
  Status status = GgufFile::open("/no/such/model.gguf").status();
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_NE(status.message().find("/no/such/model.gguf"), std::string::npos);
  EXPECT_EQ(open_weights("/no/such/model.gguf").status().code(), ErrorCode::kNotFound);
}

TEST(Gguf, SmolLm2Opens) {
  const auto path = testing::cached_smollm2();
  if (path.empty()) GTEST_SKIP() << "the SmolLM2 GGUF is not in the cache";
  auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_EQ(*(*file)->string("general.architecture"), "llama");
  EXPECT_EQ((*file)->strings("tokenizer.ggml.tokens")->size(), 49152u);
  const TensorInfo* embedding = (*file)->find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->shape, (std::vector<std::int64_t>{49152, 576}));
  std::int64_t elements = 0;
  for (const TensorInfo& tensor : (*file)->tensors()) {
    std::vector<float> out(static_cast<std::size_t>(tensor.element_count()));
    ASSERT_TRUE((*file)->read_f32(tensor.name, out).ok()) << tensor.name;
    for (float value : out) ASSERT_TRUE(std::isfinite(value)) << tensor.name;
    elements += tensor.element_count();
  }
  EXPECT_EQ(elements, 134515008);
}

}  // namespace
}  // namespace rl
