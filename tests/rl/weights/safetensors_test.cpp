#include "rl/weights/safetensors.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "test_files.h"
#include "tests/support/file_size_limit.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;
using testing::raw;
using testing::TempFolder;

std::string file_bytes(const std::string& header, const std::string& data) {
  return raw(static_cast<std::uint64_t>(header.size())) + header + data;
}

Status parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "m.safetensors").status();
}

Status parse(const std::string& header, const std::string& data) {
  return parse(file_bytes(header, data));
}

std::vector<float> read(const WeightSource& source, std::string_view name) {
  const TensorInfo* tensor = source.find(name);
  if (tensor == nullptr) return {};
  std::vector<float> out(static_cast<std::size_t>(tensor->element_count()));
  EXPECT_TRUE(source.read_f32(name, out).ok());
  return out;
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  TempFolder folder;
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<float> scalar = {0.5f};
  const std::vector<TensorView> tensors = {
      {"b.weight", {2, 3}, a}, {"a \"quoted\" 名", {}, scalar}, {"empty", {0, 4}, {}}};
  const auto file = folder.path() / "model.safetensors";
  ASSERT_TRUE(write_safetensors(file, tensors, {{"format", "pt"}}).ok());
  EXPECT_EQ(folder.file_count(), 1u);  // no temporary file left

  auto source = open_safetensors(folder.path());
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  EXPECT_EQ((*source)->tensors().size(), 3u);
  EXPECT_EQ((*source)->find("b.weight")->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(read(**source, "b.weight"), a);
  EXPECT_EQ(read(**source, "a \"quoted\" 名"), scalar);
  EXPECT_EQ(read(**source, "empty").size(), 0u);
  std::vector<float> row(3);
  ASSERT_TRUE((*source)->read_f32_range("b.weight", 3, row).ok());
  EXPECT_EQ(row, (std::vector<float>{4, 5, 6}));

  const std::string bytes = testing::read_file(file);
  auto header = parse_safetensors(std::as_bytes(std::span(bytes)), "x");
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->metadata.at("format"), "pt");
  EXPECT_EQ(header->data_offset % 8, 0u);
}

TEST(Safetensors, ReadNamesWhatTheCallerGotWrong) {
  TempFolder folder;
  const std::vector<float> a = {1, 2};
  const auto file = folder.path() / "m.safetensors";
  ASSERT_TRUE(write_safetensors(file, std::vector<TensorView>{{"a", {2}, a}}, {}).ok());
  auto source = open_safetensors(file);
  ASSERT_TRUE(source.ok());
  std::vector<float> out(3);
  Status missing = (*source)->read_f32("nope", out);
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_NE(missing.message().find("nope"), std::string::npos);
  EXPECT_EQ((*source)->read_f32("a", out).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ((*source)->read_f32_range("a", 0, out).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ((*source)->read_f32_range("a", -1, std::span(out).first(1)).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ((*source)->read_f32_range("a", INT64_MAX, std::span(out).first(1)).code(),
            ErrorCode::kInvalidArgument);
}

TEST(Safetensors, FixturesLoadSingleAndSharded) {
  int opened = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing::fixtures() / "models")) {
    if (std::filesystem::exists(entry.path() / "adapter_config.json")) continue;
    auto source = open_safetensors(entry.path());
    ASSERT_TRUE(source.ok()) << source.status().to_string();
    EXPECT_FALSE((*source)->tensors().empty());
    for (const TensorInfo& tensor : (*source)->tensors()) {
      std::vector<float> out(static_cast<std::size_t>(tensor.element_count()));
      EXPECT_TRUE((*source)->read_f32(tensor.name, out).ok()) << tensor.name;
    }
    ++opened;
  }
  std::printf("%d checkpoints opened\n", opened);
  EXPECT_GT(opened, 0);
}

// ---- files that lie ----

constexpr const char* kGood = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

TEST(SafetensorsDamage, GoodHeaderIsTheBaseline) {
  EXPECT_TRUE(parse(kGood, std::string(8, '\0')).ok());
}

TEST(SafetensorsDamage, EveryTruncationIsAnError) {
  const std::string whole = file_bytes(kGood, std::string(8, 'x'));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(parse(whole.substr(0, size)).code(), ErrorCode::kInvalidArgument) << size;
  }
}

TEST(SafetensorsDamage, HeaderLengthBeyondTheFile) {
  Status huge = parse(raw(std::uint64_t{1} << 60) + "{}");
  EXPECT_EQ(huge.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(huge.message().find("m.safetensors"), std::string::npos);
  EXPECT_FALSE(parse(raw(~std::uint64_t{0}) + "{}").ok());
  EXPECT_FALSE(parse(raw(std::uint64_t{3}) + "{}").ok());
}

struct BadHeader {
  const char* what;
  const char* header;
  const char* mentions;
};

class SafetensorsBadHeader : public ::testing::TestWithParam<BadHeader> {};

TEST_P(SafetensorsBadHeader, IsRefusedByName) {
  Status status = parse(GetParam().header, std::string(8, '\0'));
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(GetParam().mentions), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("m.safetensors"), std::string::npos) << status.message();
}

INSTANTIATE_TEST_SUITE_P(
    All, SafetensorsBadHeader,
    ::testing::Values(
        BadHeader{"not_json", "{\"a\":", "JSON"}, BadHeader{"not_utf8", "{\"\xff\":{}}", "JSON"},
        BadHeader{"array", "[]", "array"}, BadHeader{"number", R"({"a":3})", "number"},
        BadHeader{"nested", R"({"a":{"dtype":{}}})", "object"},
        BadHeader{"deep", "{\"a\":{\"shape\":[[[[[[[[[", "array"},
        BadHeader{"trailing_bytes", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                  "4 bytes at the end"},
        BadHeader{"no_dtype", R"({"a":{"shape":[2],"data_offsets":[0,8]}})", "tensor a"},
        BadHeader{"unknown_dtype", R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})",
                  "F8_E4M3"},
        BadHeader{"shape_too_small", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})",
                  "tensor a"},
        BadHeader{"shape_overflows",
                  R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8]}})",
                  "tensor a"},
        BadHeader{"shape_2_60",
                  R"({"a":{"dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,8]}})",
                  "tensor a"},
        BadHeader{"shape_negative", R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
                  "-2"},
        BadHeader{"shape_fraction", R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})",
                  "2.0"},
        BadHeader{"offset_beyond_end", R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})",
                  "truncated"},
        BadHeader{"offset_huge",
                  R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]}})",
                  "beyond any file"},
        BadHeader{"offsets_reversed", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
                  "ends before"},
        BadHeader{"three_offsets", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})",
                  "two numbers"},
        BadHeader{
            "overlap",
            R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
            "overlaps"},
        BadHeader{"hole", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "no tensor"},
        BadHeader{
            "twice",
            R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
            "twice"}),
    [](const auto& test) { return std::string(test.param.what); });

TEST(SafetensorsIndex, NamesTheMissingShardAndTheMissingTensor) {
  TempFolder folder;
  const std::vector<float> a = {1};
  ASSERT_TRUE(write_safetensors(folder.path() / "s1.safetensors",
                                std::vector<TensorView>{{"a", {1}, a}}, {})
                  .ok());
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"a":"s1.safetensors","b":"s2.safetensors"}})");
  Status missing = open_safetensors(folder.path()).status();
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_NE(missing.message().find("s2.safetensors"), std::string::npos);

  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"a":"s1.safetensors","b":"s1.safetensors"}})");
  Status lacking = open_safetensors(folder.path()).status();
  EXPECT_EQ(lacking.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(lacking.message().find("first b"), std::string::npos) << lacking.message();

  for (const char* bad : {"{", "[]", R"({"weight_map":3})", R"({"weight_map":{"a":3}})",
                          R"({"weight_map":{"a":"../x"}})", R"({"weight_map":{"a":"/etc/passwd"}})",
                          R"({"weight_map":{"a":".."}})"}) {
    folder.write("model.safetensors.index.json", bad);
    EXPECT_EQ(open_safetensors(folder.path()).status().code(), ErrorCode::kInvalidArgument) << bad;
  }
}

TEST(Safetensors, MissingFilesAndFoldersSayWhatIsWanted) {
  TempFolder folder;
  EXPECT_EQ(open_safetensors(folder.path() / "no.safetensors").status().code(),
            ErrorCode::kNotFound);
  Status empty = open_safetensors(folder.path()).status();
  EXPECT_EQ(empty.code(), ErrorCode::kNotFound);
  EXPECT_NE(empty.message().find("model.safetensors"), std::string::npos);
  EXPECT_EQ(open_safetensors("/dev/null").status().code(), ErrorCode::kInvalidArgument);
  folder.write("empty.safetensors", "");
  EXPECT_EQ(open_safetensors(folder.path() / "empty.safetensors").status().code(),
            ErrorCode::kInvalidArgument);
}

// ---- the writer ----

TEST(SafetensorsWriter, RefusesWhatNoReaderWouldTake) {
  TempFolder folder;
  const std::vector<float> a = {1, 2};
  const auto file = folder.path() / "m.safetensors";
  EXPECT_EQ(write_safetensors(file, std::vector<TensorView>{{"a", {3}, a}}, {}).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      write_safetensors(file, std::vector<TensorView>{{"a", {2}, a}, {"a", {2}, a}}, {}).code(),
      ErrorCode::kInvalidArgument);
  EXPECT_EQ(write_safetensors(file, std::vector<TensorView>{{"\xff", {2}, a}}, {}).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(write_safetensors(file, std::vector<TensorView>{{"__metadata__", {2}, a}}, {}).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      write_safetensors(folder.path() / "no" / "m", std::vector<TensorView>{{"a", {2}, a}}, {})
          .code(),
      ErrorCode::kNotFound);
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(SafetensorsWriter, WhatAHalfCannotHoldIsAnErrorAndNotInfinity) {
  TempFolder folder;
  const auto file = folder.path() / "m.safetensors";
  const auto write = [&](float value, DType dtype) {
    return write_safetensors(file, std::vector<TensorView>{{"a.weight", {1}, {&value, 1}, dtype}},
                             {});
  };
  EXPECT_TRUE(write(-65519.0F, DType::kF16).ok());
  EXPECT_TRUE(write(1e6F, DType::kBF16).ok());
  EXPECT_TRUE(write(std::numeric_limits<float>::infinity(), DType::kF16).ok())
      << "it was infinite before";
  const Status status = write(-65520.0F, DType::kF16);
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("m.safetensors: a.weight: holds -65520"), std::string::npos)
      << status.message();
}

TEST(SafetensorsWriter, FailedWriteKeepsTheOldFileAndLeavesNothingBehind) {
  TempFolder folder;
  const auto file = folder.path() / "m.safetensors";
  const std::vector<float> small = {1, 2, 3};
  ASSERT_TRUE(write_safetensors(file, std::vector<TensorView>{{"a", {3}, small}}, {}).ok());
  const std::string before = testing::read_file(file);

  const std::vector<float> large(1 << 16, 2.0f);
  const Status status = [&] {
    const support::FileSizeLimit limit(1 << 16);
    return write_safetensors(file, std::vector<TensorView>{{"a", {1 << 16}, large}}, {});
  }();
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted) << status.to_string();
  EXPECT_NE(status.message().find("m.safetensors"), std::string::npos);
  EXPECT_EQ(testing::read_file(file), before);
  EXPECT_EQ(folder.file_count(), 1u);
}

}  // namespace
}  // namespace rl
