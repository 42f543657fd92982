// What rows of prompts and of preferences give to a chat template next to their messages.
#include "rl/data/chat_columns.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::Result;

class ChatColumnsTest : public ::testing::Test {
 protected:
  Result<DataRow> mapped(const std::string& json) const {
    return map_row({.value = ordered_json::parse(json), .where = "t:1"}, mapping_);
  }
  static std::string roles(const DataRow& row) {
    std::string all;
    for (const ordered_json& message : row.prompt)
      all += message.at("role").get<std::string>() + ":" +
             message.at("content").get<std::string>() + " ";
    return all;
  }

  RowMapping mapping_;
  const std::string chat_ = R"("prompt": [{"role": "user", "content": "q"}])";
  const std::string tools_ = R"("tools": [{"name": "f"}])";
};

TEST_F(ChatColumnsTest, AChatGetsBoth) {
  const auto row = mapped("{" + chat_ + ", " + tools_ + R"(, "system": "S"})");
  ASSERT_TRUE(row.ok()) << row.status().to_string();
  EXPECT_EQ(roles(*row), "system:S user:q ");
  EXPECT_EQ(row->tools.dump(), R"([{"name":"f"}])");
  EXPECT_EQ(row->unread, "");
  EXPECT_TRUE(row->extra.is_null()) << "rewards are told nothing of it";
}

TEST_F(ChatColumnsTest, SoDoesATextThatIsMadeAUsersMessage) {
  mapping_.prompt_form = RowMapping::PromptForm::kChat;
  mapping_.system_prompt = "default";
  EXPECT_EQ(roles(*mapped(R"({"prompt": "q", "system": "S"})")), "system:S user:q ");
  EXPECT_EQ(roles(*mapped(R"({"prompt": "q", "system": ""})")), "system:default user:q ");
  EXPECT_EQ(mapped(R"({"prompt": "q", )" + tools_ + "}")->tools.size(), 1u);
}

TEST_F(ChatColumnsTest, OfAPlainPromptTheyAreUnread) {
  const auto row = mapped(R"({"prompt": "q", "system": "S", )" + tools_ + "}");
  EXPECT_EQ(row->prompt, "q");
  EXPECT_EQ(row->unread, "'tools', 'system'");
  EXPECT_TRUE(row->tools.is_null());
}

TEST_F(ChatColumnsTest, WhatIsEmptyIsNotThere) {
  const auto row = mapped("{" + chat_ + R"(, "tools": [], "system": null})");
  ASSERT_TRUE(row.ok()) << row.status().to_string();
  EXPECT_EQ(roles(*row), "user:q ");
  EXPECT_TRUE(row->tools.empty());
}

TEST_F(ChatColumnsTest, MistakesNameTheRow) {
  EXPECT_EQ(mapped("{" + chat_ + R"(, "system": 5})").status().message(),
            "t:1: 'system' must be a text, the conversation's system message, it is a number");
  EXPECT_EQ(
      mapped(R"({"prompt": [{"role": "system", "content": "T"}, {"role": "user", "content": "q"}],)"
             R"( "system": "S"})")
          .status()
          .message(),
      "t:1: 'system' is another text than the system message in 'prompt': keep one of them");
  EXPECT_TRUE(mapped("{" + chat_ + R"(, "tools": "You have f."})")
                  .status()
                  .message()
                  .starts_with("t:1: 'tools' must be a list of objects"));
}

TEST_F(ChatColumnsTest, AColumnThatIsSomethingElseIsLeftAlone) {
  mapping_.answer = "system";
  const auto row = mapped("{" + chat_ + R"(, "system": "S"})");
  ASSERT_TRUE(row.ok()) << row.status().to_string();
  EXPECT_EQ(roles(*row), "user:q ");
  EXPECT_EQ(row->ground_truth, "S");
}

TEST_F(ChatColumnsTest, PromptsOfPreferencesGetThem) {
  mapping_.preference = PreferenceMapping{};
  const std::string good = R"([{"role": "assistant", "content": "g"}])",
                    bad = R"([{"role": "assistant", "content": "b"}])";
  const std::string columns = R"(, "system": "S", )" + tools_ + "}";
  // A chat, and a text that becomes one since messages follow it.
  for (const std::string& prompt : {chat_, std::string(R"("prompt": "q")")}) {
    const auto row =
        mapped("{" + prompt + R"(, "chosen": )" + good + R"(, "rejected": )" + bad + columns);
    ASSERT_TRUE(row.ok()) << row.status().to_string();
    EXPECT_EQ(roles(*row), "system:S user:q ");
    EXPECT_EQ(row->tools.size(), 1u);
    EXPECT_EQ(row->unread, "");
    EXPECT_EQ(row->preference->chosen, "g");
  }
  EXPECT_EQ(mapped(R"({"prompt": "q", "chosen": "g", "rejected": "b")" + columns)->unread,
            "'tools', 'system'");
}

}  // namespace
}  // namespace rl
