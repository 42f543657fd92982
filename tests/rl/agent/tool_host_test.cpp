#include "rl/agent/tool_host.h"

#include <algorithm>

#include "tests/rl/agent/agent_fixture.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

class ToolHostTest : public AgentTest {
 protected:
  static ConversationState state() {
    return {.id = "1",
            .messages = ordered_json::array(),
            .tools_kwargs = ordered_json::object(),
            .interaction_kwargs = nullptr};
  }

  static std::vector<ToolAnswer> answers(ToolHost& host, std::size_t count) {
    std::vector<ToolAnswer> all;
    while (all.size() < count) {
      EXPECT_TRUE(host.work(std::chrono::seconds(1)).ok());
      for (ToolAnswer& answer : host.take()) all.push_back(std::move(answer));
      if (host.open() == 0 && all.size() < count) break;
    }
    std::sort(all.begin(), all.end(),
              [](const ToolAnswer& a, const ToolAnswer& b) { return a.call < b.call; });
    return all;
  }
};

TEST_F(ToolHostTest, SchemasAreWhatVerlWouldShowAModel) {
  const auto host = ToolHost::create(options());
  ASSERT_TRUE(host.ok()) << host.status().to_string();
  ASSERT_EQ((*host)->schemas().size(), 2U);
  EXPECT_EQ(
      (*host)->schemas()[0].dump(),
      R"({"type":"function","function":{"name":"calculator","description":"adds","parameters":{"type":"object","properties":{"operation":{"type":"string","enum":["add","hang"]},)"
      R"("a":{"type":"integer","description":"one"},"b":{"type":"integer"}},"required":["a","b"]}}})");
  EXPECT_EQ((*host)->schemas()[1].dump(),
            R"({"type":"function","function":{"name":"plain","description":"says ok"}})");
}

TEST_F(ToolHostTest, CallsAreAnsweredAndFailuresAreAnswersToo) {
  const auto host = ToolHost::create(options());
  ASSERT_TRUE(host.ok()) << host.status().to_string();
  ConversationState with_start = state();
  with_start.tools_kwargs = {{"calculator", {{"create_kwargs", {{"start", 100}}}}}};
  (*host)->call({"calculator", {{"a", 1}, {"b", 2}}}, with_start);
  (*host)->call({"calculator", {{"a", 1}}}, state());
  (*host)->call({"calculator", {{"operation", "hang"}}}, state());
  (*host)->call({"calculator", {{"operation", "crash"}}}, state());
  (*host)->call({"calculator", {{"operation", "image"}}}, state());
  (*host)->call({"plain", ordered_json::object()}, state());
  const std::vector<ToolAnswer> all = answers(**host, 6);
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0].text, "the sum is 103");
  EXPECT_EQ(all[0].reward, 0.5);
  EXPECT_EQ(all[1].failure, ScoreFailure::kError);
  EXPECT_EQ(all[1].text, "Error executing tool 'calculator': 'b'");
  EXPECT_EQ(all[2].failure, ScoreFailure::kTimeout);
  EXPECT_EQ(all[3].failure, ScoreFailure::kCrash);
  EXPECT_NE(all[3].text.find("signal 9"), std::string::npos) << all[3].text;
  EXPECT_EQ(all[4].failure, ScoreFailure::kError);
  EXPECT_EQ(all[5].text, "ok");
  EXPECT_EQ(all[5].reward, std::nullopt);
}

TEST_F(ToolHostTest, AUserAnswersByWhatWasSaid) {
  AgentOptions settings = options();
  settings.tools.clear();
  settings.interactions = users();
  const auto host = ToolHost::create(settings);
  ASSERT_TRUE(host.ok()) << host.status().to_string();
  EXPECT_TRUE((*host)->schemas().empty());
  for (const char* said : {"3", "4", "boom"}) {
    ConversationState now = state();
    now.interaction_kwargs = {{"name", "patient"}, {"ground_truth", "4"}};
    now.messages = ordered_json::array({{{"role", "assistant"}, {"content", said}}});
    ASSERT_TRUE((*host)->ask(now).ok());
  }
  const std::vector<ToolAnswer> all = answers(**host, 3);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].text, "again");
  EXPECT_FALSE(all[0].done);
  EXPECT_TRUE(all[1].done);
  EXPECT_EQ(all[1].reward, 1.0);
  EXPECT_EQ(all[2].failure, ScoreFailure::kError);
  ConversationState other = state();
  other.interaction_kwargs = {{"name", "stranger"}};
  EXPECT_EQ((*host)->ask(other).status().code(), runtime::ErrorCode::kInvalidArgument);
}

TEST_F(ToolHostTest, WhatIsWrongWithTheFilesIsSaid) {
  AgentOptions settings = options();
  settings.tools = folder_ / "none.yaml";
  EXPECT_EQ(ToolHost::create(settings).status().code(), runtime::ErrorCode::kNotFound);
  settings.tools = write("bad.yaml", "tools:\n  - config: {type: native}\n");
  EXPECT_NE(ToolHost::create(settings).status().message().find("class_name"), std::string::npos);
  settings.tools = write("mcp.yaml", "tools:\n  - class_name: a.B\n    config: {type: mcp}\n");
  EXPECT_NE(ToolHost::create(settings).status().message().find("mcp"), std::string::npos);
  settings.tools = write("missing.yaml",
                         "tools:\n  - class_name: my_tools.Abacus\n    config: {type: native}\n");
  const auto host = ToolHost::create(settings);
  ASSERT_FALSE(host.ok());
  EXPECT_NE(host.status().message().find("Abacus"), std::string::npos) << host.status().to_string();
}

}  // namespace
}  // namespace rl
