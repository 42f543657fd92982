#include "rl/data/message_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::ErrorCode;
using runtime::Result;
using support::expect_failure;

class MessageTreeTest : public ::testing::Test {
 protected:
  // Of messages that are at f:1, f:2 and so on.
  static Result<std::vector<DataRow>> read(const std::vector<const char*>& messages,
                                           const RowMapping& mapping = {}) {
    std::vector<RawRow> rows;
    for (const char* message : messages)
      rows.push_back({ordered_json::parse(message), "f:" + std::to_string(rows.size() + 1)});
    return conversations_of_tree(rows, mapping);
  }
  static void expect_refused(const std::vector<const char*>& messages,
                             const std::vector<std::string>& parts) {
    expect_failure(read(messages).status(), ErrorCode::kInvalidArgument, parts);
  }
};

TEST_F(MessageTreeTest, TheReplyOfTheLowestRankIsTheResponse) {
  const auto rows = read({
      R"({"id": "q", "parent_id": null, "role": "user", "text": "ranked"})",
      R"({"id": "a", "parent_id": "q", "role": "assistant", "text": "unranked"})",
      R"({"id": "b", "parent_id": "q", "role": "assistant", "text": "second", "rank": 1})",
      R"({"id": "c", "parent_id": "q", "role": "assistant", "text": "best", "rank": 0})",
      R"({"id": "d", "parent_id": "q", "role": "user", "text": "no reply", "rank": -1})",
      R"({"id": "r", "parent_id": "", "role": "user", "text": "not ranked"})",
      R"({"id": "e", "parent_id": "r", "role": "assistant", "text": "first"})",
      R"({"id": "f", "parent_id": "r", "role": "assistant", "text": "later"})",
  });
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ(rows->at(0).response, "best");
  EXPECT_EQ(rows->at(1).response, "first");
}

TEST_F(MessageTreeTest, APromptIsThePathFromTheRootInAnyOrderOfTheFile) {
  RowMapping mapping;
  mapping.system_prompt = "Be brief.";
  const auto rows = read(
      {
          R"({"id": 4, "parent_id": 3, "role": "bot", "content": "d"})",
          R"({"id": 3, "parent_id": 2, "role": "human", "content": "c"})",
          R"({"id": 2, "parent_id": 1, "role": "gpt", "content": "b"})",
          R"({"id": 1, "parent_id": null, "role": "prompter", "content": "a"})",
          R"({"id": 5, "parent_id": null, "role": "system", "content": "Sing."})",
          R"({"id": 6, "parent_id": 5, "role": "user", "content": "e"})",
          R"({"id": 7, "parent_id": 6, "role": "assistant", "content": "f"})",
      },
      mapping);
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ(rows->at(0).where, "f:2");
  EXPECT_EQ(rows->at(0).prompt, ordered_json::parse(R"([
      {"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"},
      {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}])"));
  EXPECT_EQ(rows->at(0).response, "d");
  EXPECT_EQ(rows->at(1).where, "f:4");
  EXPECT_EQ(rows->at(2).prompt, ordered_json::parse(R"([
      {"role": "system", "content": "Sing."}, {"role": "user", "content": "e"}])"))
      << "a tree's own system message stays the only one";
}

TEST_F(MessageTreeTest, ACircleIsAnErrorAlsoWhereNoRowComesFromIt) {
  const char* const question = R"({"id": "q", "parent_id": null, "role": "user", "text": "x"})";
  const char* const answer = R"({"id": "a", "parent_id": "q", "role": "assistant", "text": "y"})";
  const std::string why = ": its parents go round in a circle";
  ASSERT_TRUE(read({question, answer}).ok());
  expect_refused(
      {question, answer, R"({"id": "s", "parent_id": "s", "role": "user", "text": "itself"})"},
      {"f:3" + why});
  expect_refused({question, R"({"id": "b", "parent_id": "c", "role": "user", "text": "x"})", answer,
                  R"({"id": "c", "parent_id": "b", "role": "user", "text": "x"})"},
                 {"f:2" + why});
  // The third leads into the circle and is no part of it.
  expect_refused(
      {question, answer, R"({"id": "in", "parent_id": "c", "role": "user", "text": "leads there"})",
       R"({"id": "b", "parent_id": "c", "role": "assistant", "text": "x"})",
       R"({"id": "c", "parent_id": "b", "role": "assistant", "text": "x"})"},
      {"f:5" + why});
}

TEST_F(MessageTreeTest, MessagesThatMakeNoTreeAreNamed) {
  const char* const question = R"({"id": 7, "parent_id": null, "role": "user", "text": "x"})";
  expect_refused({question, R"({"id": "7", "parent_id": null, "role": "user", "text": "y"})"},
                 {"f:2: the id '7'"});
  expect_refused({question}, {"f:1: no user's message in the data has a reply"});
  expect_refused({question, R"({"id": 8, "parent_id": 7, "role": "judge", "text": "x"})"},
                 {"f:2: 'role' is 'judge'", "prompter"});
  expect_refused({question, R"({"id": 8, "role": "bot", "text": "x"})"},
                 {"f:2: no key 'parent_id'", "'id', 'role', 'text'"});
  expect_refused({question, R"({"id": 8, "parent_id": 7, "role": "bot", "text": ["x"]})"},
                 {"f:2: 'text' must be a text, it is a list"});
}

}  // namespace
}  // namespace rl
