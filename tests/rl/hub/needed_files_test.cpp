// The choice among a model's files. Whole downloads are in hub_test.cpp.
#include "rl/hub/needed_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using FileNames = std::vector<std::string>;

bool is_needed(const NeededFiles& needed, const std::string& name) {
  return std::find(needed.files.begin(), needed.files.end(), name) != needed.files.end();
}

TEST(NeededFiles, OfSeveralFormsOfTheWeightsOneIsTaken) {
  const FileNames all{"config.json",
                      "tokenizer.json",
                      "pytorch_model.bin",
                      "model.safetensors",
                      "model.safetensors.index.json",
                      "m.gguf",
                      "README.md"};
  const auto needed = needed_files(all, HubNeed::kModel, "org/name");
  ASSERT_TRUE(needed.ok()) << needed.status().to_string();
  EXPECT_EQ(needed->files, (FileNames{"config.json", "tokenizer.json", "model.safetensors"}));
  EXPECT_EQ(needed->index, "");
  EXPECT_EQ(needed->gguf, "");
}

TEST(NeededFiles, AnIndexComesBeforeTheFilesThatItNames) {
  const auto needed =
      needed_files({"config.json", "pytorch_model.bin.index.json",
                    "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"},
                   HubNeed::kModel, "org/name");
  ASSERT_TRUE(needed.ok()) << needed.status().to_string();
  EXPECT_EQ(needed->index, "pytorch_model.bin.index.json");
  EXPECT_EQ(needed->files, (FileNames{"config.json", "pytorch_model.bin.index.json"}));
}

TEST(NeededFiles, TemplatesOfTheirFolderComeAlongAndNothingBelowIt) {
  const auto needed = needed_files(
      {"config.json", "tokenizer.json", "additional_chat_templates/tools.jinja",
       "additional_chat_templates/old/tools.jinja", "additional_chat_templates/README.md"},
      HubNeed::kTokenizer, "org/name");
  ASSERT_TRUE(needed.ok()) << needed.status().to_string();
  EXPECT_TRUE(is_needed(*needed, "additional_chat_templates/tools.jinja"));
  EXPECT_FALSE(is_needed(*needed, "additional_chat_templates/old/tools.jinja"));
  EXPECT_FALSE(is_needed(*needed, "additional_chat_templates/README.md"));
}

// A .gguf file has its own tokenizer and configuration.
TEST(NeededFiles, ASingleGgufFileIsModelAndTokenizer) {
  for (const HubNeed need : {HubNeed::kModel, HubNeed::kTokenizer}) {
    const auto needed = needed_files({"config.json", "m.gguf", "other/n.gguf"}, need, "org/name");
    ASSERT_TRUE(needed.ok()) << needed.status().to_string();
    EXPECT_EQ(needed->gguf, "m.gguf");
    EXPECT_EQ(needed->files, FileNames{"m.gguf"});
  }
}

TEST(NeededFiles, WhatIsMissingIsNamedAndAChoiceIsTheUsers) {
  const FileNames none{"config.json", "README.md"};
  support::expect_failure(needed_files(none, HubNeed::kModel, "org/name").status(),
                          runtime::ErrorCode::kNotFound, {"org/name", "weights", "2 files"});
  support::expect_failure(needed_files(none, HubNeed::kTokenizer, "org/name").status(),
                          runtime::ErrorCode::kNotFound, {"org/name", "tokenizer"});
  support::expect_failure(needed_files({"a.gguf", "b.gguf"}, HubNeed::kModel, "org/name").status(),
                          runtime::ErrorCode::kNotFound, {"several", "a.gguf, b.gguf"});
}

TEST(IndexedFiles, EachIsNamedOnceAndNoneLeadsOutOfTheFolder) {
  const support::TemporaryFolder folder;
  const auto indexed = [&](const std::string& text) {
    std::ofstream(folder.file("index.json")) << text;
    return indexed_files(folder.path(), "index.json");
  };
  const auto files = indexed(R"({"weight_map": {"a": "2.bin", "b": "1.bin", "c": "2.bin"}})");
  ASSERT_TRUE(files.ok()) << files.status().to_string();
  EXPECT_EQ(*files, (FileNames{"1.bin", "2.bin"}));
  for (const char* outside :
       {R"({"weight_map": {"a.b": "../x.bin"}})", R"({"weight_map": {"a.b": "/etc/x"}})",
        R"({"weight_map": {"a.b": 7}})"})
    support::expect_failure(indexed(outside).status(), runtime::ErrorCode::kInvalidArgument,
                            {folder.file("index.json"), "a.b"});
  for (const char* damaged : {"", "{", "[]", R"({"weight_map": 3})", "{}"})
    support::expect_failure(indexed(damaged).status(), runtime::ErrorCode::kInvalidArgument,
                            {folder.file("index.json"), "weight_map"});
}

}  // namespace
}  // namespace rl
