#include "rl/weights/shard_index.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "test_files.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;
using testing::raw;
using testing::TempFolder;

// A format of eight bytes for each scalar: its name, padded, and its value.
std::string record(char name, float value) { return raw(std::uint32_t(name)) + raw(value); }

Result<FileTensors> read_records(std::span<const std::byte> file, const std::string& name) {
  if (file.size() % 8 != 0) return runtime::invalid_argument(name + ": half a record");
  FileTensors found;
  for (std::size_t at = 0; at < file.size(); at += 8) {
    found.infos.push_back({std::string(1, static_cast<char>(file[at])), {}, DType::kF32});
    found.bytes.emplace_back(file.subspan(at + 4, 4));
  }
  return found;
}

float value_of(const WeightSource& source, std::string_view name) {
  float value = -1.0F;
  EXPECT_TRUE(source.read_f32(name, std::span(&value, 1)).ok()) << name;
  return value;
}

TEST(ShardIndex, EachTensorIsReadFromTheFileThatTheIndexNames) {
  const TempFolder folder;
  folder.write("one", record('a', 1.0F) + record('b', 2.0F));
  folder.write("two", record('b', 20.0F) + record('c', 30.0F));
  const auto index =
      folder.write("x.index.json", R"({"weight_map":{"a":"one","b":"two","c":"two"}})");
  const auto source = open_sharded(index, read_records);
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  EXPECT_EQ((*source)->tensors().size(), 3u) << "the first file's b is not asked for";
  EXPECT_EQ(value_of(**source, "a"), 1.0F);
  EXPECT_EQ(value_of(**source, "b"), 20.0F);
  EXPECT_EQ(value_of(**source, "c"), 30.0F);
  EXPECT_EQ((*source)->find("d"), nullptr);
}

TEST(ShardIndex, OneFileAloneHasAllItsTensors) {
  const TempFolder folder;
  const auto file = folder.write("one", record('a', 1.0F) + record('b', 2.0F));
  const auto source = open_single(file, read_records);
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  EXPECT_EQ((*source)->tensors().size(), 2u);
  EXPECT_EQ(value_of(**source, "b"), 2.0F);
}

TEST(ShardIndex, WhatTheFormatRefusesIsSaidOfItsFile) {
  const TempFolder folder;
  folder.write("one", record('a', 1.0F));
  folder.write("two", record('b', 2.0F) + "half");
  const auto index = folder.write("x.index.json", R"({"weight_map":{"a":"one","b":"two"}})");
  support::expect_failure(open_sharded(index, read_records).status(), ErrorCode::kInvalidArgument,
                          {(folder.path() / "two").string() + ": half a record"});
  support::expect_failure(open_single(folder.path() / "two", read_records).status(),
                          ErrorCode::kInvalidArgument, {"two: half a record"});
}

TEST(ShardIndex, NamesOfFilesThatAreNoneAreRefused) {
  const TempFolder folder;
  folder.write("one", record('a', 1.0F));
  for (const char* name : {"", ".", "./one", "one\\u0000", "sub/one"}) {
    const auto index = folder.write(
        "x.index.json", R"({"weight_map":{"some.tensor":")" + std::string(name) + "\"}}");
    support::expect_failure(open_sharded(index, read_records).status(), ErrorCode::kInvalidArgument,
                            {"x.index.json", "weight_map.some.tensor is not a plain file name"});
  }
}

}  // namespace
}  // namespace rl
