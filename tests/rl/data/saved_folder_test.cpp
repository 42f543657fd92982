// Folders that were damaged or made up; row_source_test.cpp has those that the library saved.
#include "rl/data/saved_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/rl/data/test_files.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;
using support::expect_failure;

class SavedFolderTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
  }
  runtime::Status opened(const std::string& split = "") const {
    return open_saved_folder(folder_.path().string(), {.split = split}).status();
  }
  void expect_refused(const std::string& name, const std::string& text,
                      const std::string& why) const {
    write(name, text);
    expect_failure(opened(), ErrorCode::kInvalidArgument, {folder_.file(name), why});
  }

  support::TemporaryFolder folder_;
};

// A folder from elsewhere reads no other file of this machine.
TEST_F(SavedFolderTest, FilesLieRightInTheFolder) {
  const std::string outside = testing::data_file("types.arrow");
  ASSERT_TRUE(fs::exists(outside));
  fs::copy(outside, folder_.path() / "own.arrow");
  write("state.json", R"({"_data_files": [{"filename": "own.arrow"}]})");
  ASSERT_TRUE(opened().ok()) << opened().to_string();
  for (const std::string& name : {outside, std::string("../own.arrow"), std::string("a/own.arrow"),
                                  std::string(".."), std::string()})
    expect_refused("state.json", R"({"_data_files": [{"filename": ")" + name + "\"}]}",
                   "'_data_files' must be a list of objects with a 'filename'");
}

TEST_F(SavedFolderTest, SplitsLieRightInTheFolder) {
  for (const char* split : {"..", ".", "a/b", "/tmp", ""})
    expect_refused("dataset_dict.json", R"({"splits": [")" + std::string(split) + "\"]}",
                   "a split must be a folder's name");
}

TEST_F(SavedFolderTest, DescriptionsOfAnotherFormAreNamed) {
  for (const char* text : {"[]", "{}", R"({"_data_files": "a"})"})
    expect_refused("state.json", text, "it must be an object with a list of '_data_files'");
  expect_refused("state.json", R"({"_data_files": [)", "not JSON");
  for (const char* text : {"[]", "{}", R"({"splits": []})"})
    expect_refused("dataset_dict.json", text, "it must be an object with a list of 'splits'");
}

TEST_F(SavedFolderTest, RowsThatAnIndexChoosesAreNotReadAsAll) {
  write("state.json",
        R"({"_data_files": [{"filename": "a.arrow"}],
            "_indices_data_files": [{"filename": "indices.arrow"}]})");
  expect_failure(opened(), ErrorCode::kUnimplemented, {"state.json", "flatten_indices()"});
}

TEST_F(SavedFolderTest, ASplitThatIsNotThereIsTakenFromNoOther) {
  expect_failure(open_saved_folder(testing::data_file("splits"), {.split = "extra"}).status(),
                 ErrorCode::kInvalidArgument, {"it has no split 'extra' (train, test)"});
  fs::create_directory(folder_.path() / "all");
  fs::copy(testing::data_file("saved"), folder_.path() / "all");
  write("dataset_dict.json", R"({"splits": ["all"]})");
  EXPECT_TRUE(opened("validation").ok()) << "the only one there is";
}

}  // namespace
}  // namespace rl
