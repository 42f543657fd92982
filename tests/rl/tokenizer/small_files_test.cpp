#include "rl/tokenizer/small_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using support::expect_failure;

class SmallFiles : public ::testing::Test {
 protected:
  std::filesystem::path written(const std::string& content) {
    const std::filesystem::path path = folder_.path() / "config.json";
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  support::TemporaryFolder folder_;
};

TEST_F(SmallFiles, AMissingFileIsNoErrorAndAnEmptyOneIsNotMissing) {
  const auto missing = folder_.path() / "no" / "config.json";
  EXPECT_EQ(read_optional_text(missing).value_or("text"), std::nullopt);
  EXPECT_TRUE(read_optional_json(missing).value_or("text").is_null());
  const auto empty = written("");
  EXPECT_EQ(read_optional_text(empty).value_or("text"), "");
  expect_failure(read_optional_json(empty).status(), ErrorCode::kInvalidArgument, {empty.string()});
}

TEST_F(SmallFiles, TextIsReadToItsLastByte) {
  const std::string text("{{ a }}\r\n\0b\n", 12);
  EXPECT_EQ(read_optional_text(written(text)).value_or(""), text);
}

TEST_F(SmallFiles, AnythingButAnObjectNamesTheFile) {
  for (const char* content : {"null", "[]", "3", "{", "{} {}"}) {
    const auto path = written(content);
    expect_failure(read_optional_json(path).status(), ErrorCode::kInvalidArgument,
                   {path.string(), "not a JSON object"});
    expect_failure(read_optional_ordered_json(path).status(), ErrorCode::kInvalidArgument,
                   {path.string(), "not a JSON object"});
  }
}

TEST_F(SmallFiles, KeysMayStayInTheFilesOrder) {
  const auto read = read_optional_ordered_json(written(R"({"b_token": 1, "a_token": 2})"));
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  std::vector<std::string> keys;
  for (const auto& item : read->items()) keys.push_back(item.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"b_token", "a_token"}));
}

// Weights under the name of a config, for instance.
TEST_F(SmallFiles, ALargeFileIsRefused) {
  const auto path = written("{}");
  std::filesystem::resize_file(path, (64 << 20) + 1);
  expect_failure(read_optional_json(path).status(), ErrorCode::kInvalidArgument,
                 {path.string(), "too long"});
}

TEST_F(SmallFiles, AFolderIsNotAMissingFile) {
  EXPECT_EQ(read_optional_text(folder_.path()).status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
