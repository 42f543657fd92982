#include "rl/config/key_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::ErrorCode;
using runtime::Result;
using Source = KeyNames::Source;

constexpr UsedKey kNamedRows[] = {
    {"job.rows", "1", KeyKind::kInt, "", "rows of a step"},
    {"job.name", "${job.title}", KeyKind::kString, "", "the name of it"},
    {"job.title", "it", KeyKind::kString, "", "the title of it"}};

class KeyNamesTest : public ::testing::Test {
 protected:
  bool replaces(const std::string& written, const ordered_json& value,
                const std::string& key = "job.rows") {
    const Result<bool> answer = names_.replaces(key, written, value);
    EXPECT_TRUE(answer.ok()) << answer.status().to_string();
    return answer.value_or(false);
  }

  const KeyTable keys_{"test", {{kNamedRows}}, {}};
  KeyNames names_{keys_};
};

TEST_F(KeyNamesTest, OneNameMayBeGivenAgain) {
  for (const Source source : {Source::kFile, Source::kCommandLine}) {
    names_.begin(source);
    EXPECT_TRUE(replaces("job.rows", 2));
    EXPECT_TRUE(replaces("job.rows", 3));
  }
  EXPECT_TRUE(names_.notes().empty());
}

TEST_F(KeyNamesTest, OfTwoNamesInAFileTheValueThatSaysSomethingCounts) {
  for (const ordered_json& nothing :
       {ordered_json(1), ordered_json(nullptr), ordered_json(""), ordered_json("${job.other}")}) {
    names_.begin(Source::kFile);
    EXPECT_TRUE(replaces("old_rows", 2));
    EXPECT_FALSE(replaces("job.rows", nothing)) << nothing;
    EXPECT_EQ(names_.name_of("job.rows"), "old_rows");
    names_.begin(Source::kFile);
    EXPECT_TRUE(replaces("job.rows", nothing)) << nothing;
    EXPECT_TRUE(replaces("old_rows", 2));
    EXPECT_EQ(names_.name_of("job.rows"), "old_rows");
  }
}

TEST_F(KeyNamesTest, ADefaultThatIsAnotherKeysValueIsThatValue) {
  names_.begin(Source::kFile);
  EXPECT_TRUE(replaces("old_name", "mine", "job.name"));
  EXPECT_FALSE(replaces("job.name", "it", "job.name"));
}

TEST_F(KeyNamesTest, TwoNamesOfAFileThatSayDifferentThingsContradict) {
  names_.begin(Source::kFile);
  EXPECT_TRUE(replaces("old_rows", 2));
  EXPECT_TRUE(replaces("job.rows", 2)) << "they agree";
  names_.begin(Source::kFile);
  EXPECT_TRUE(replaces("old_rows", 2));
  support::expect_failure(names_.replaces("job.rows", "job.rows", 4).status(),
                          ErrorCode::kInvalidArgument,
                          {"job.rows=4 contradicts old_rows=2", "set one of them"});
  EXPECT_EQ(names_.name_of("job.rows"), "old_rows");
}

TEST_F(KeyNamesTest, OnACommandLineTheLaterOneCountsAndIsNoted) {
  names_.begin(Source::kCommandLine);
  EXPECT_TRUE(replaces("old_rows", 2));
  EXPECT_TRUE(replaces("job.rows", 1));
  EXPECT_EQ(names_.name_of("job.rows"), "job.rows");
  EXPECT_EQ(
      names_.notes(),
      (std::vector<std::string>{"job.rows=1 replaces old_rows=2: both are names of job.rows"}));
}

TEST_F(KeyNamesTest, AnEarlierSourceCountsForNothing) {
  names_.begin(Source::kFile);
  EXPECT_TRUE(replaces("old_rows", 2));
  names_.begin(Source::kCommandLine);
  EXPECT_TRUE(replaces("job.rows", 4));
  EXPECT_TRUE(names_.notes().empty());
  names_.begin(Source::kFile);
  EXPECT_TRUE(replaces("old_rows", 3));
}

TEST_F(KeyNamesTest, WhatWasDeletedIsForgottenWithAllBelowIt) {
  names_.begin(Source::kFile);
  EXPECT_TRUE(replaces("old.rows", 2));
  EXPECT_TRUE(replaces("old.section", 2, "job.rows.more"));
  EXPECT_TRUE(replaces("old.name", 2, "job.rowspan"));
  names_.forget("job.rows");
  EXPECT_TRUE(replaces("job.rows", 4));
  EXPECT_TRUE(replaces("job.rows.more", 4, "job.rows.more"));
  EXPECT_FALSE(names_.replaces("job.rowspan", "job.rowspan", 4).ok()) << "a separate name";
}

TEST_F(KeyNamesTest, AKeyThatWasNotSetHasItsOwnName) {
  EXPECT_EQ(names_.name_of("job.rows"), "job.rows");
}

}  // namespace
}  // namespace rl
