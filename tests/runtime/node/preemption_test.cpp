// Possible answers of preemption's sources.
#include "runtime/node/preemption.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kNow = 1'789'700'000s;  // 2026-09-18T02:53:20Z

TEST(Preemption, WordsOfFilesAndCommands) {
  for (const char* nothing : {"", " \n", "none", "none\n"})
    EXPECT_EQ(read_preemption_words(nothing).value_or(PreemptionNotice{}), PreemptionAnswer())
        << nothing;
  auto said = read_preemption_words("preempted 25s\n");
  ASSERT_TRUE(said.ok() && *said);
  EXPECT_EQ((*said)->left, 25s);
  EXPECT_EQ((**read_preemption_words("preempted")).left, std::nullopt);
  for (const char* garbage :
       {"TRUE", "preempted soon", "preempted25s", "preempted -1s", "not preempted",
        "<html>preempted</html>", "preempted\n5s x", "none at all"}) {
    EXPECT_EQ(read_preemption_words(garbage).status().code(), ErrorCode::kInvalidArgument)
        << garbage;
  }
}

TEST(Preemption, ActionsOfAws) {
  auto said = read_aws_action(R"({"action": "stop", "time": "2026-09-18T02:55:20Z"})", kNow);
  ASSERT_TRUE(said.ok() && *said) << said.status().to_string();
  EXPECT_EQ((*said)->left, 120s);
  // A time that cannot be is no time, and the action counts.
  EXPECT_EQ(
      (**read_aws_action(R"({"action": "terminate", "time": "2026-09-18T02:50:20Z"})", kNow)).left,
      std::nullopt);
  EXPECT_EQ(
      (**read_aws_action(R"({"action": "terminate", "time": "2026-09-18T12:50:20Z"})", kNow)).left,
      std::nullopt)
      << "the notice counts, its time does not";
  for (const char* lie : {R"({"action": "terminate", "time": "2099-01-01T00:00:00Z"})",
                          R"({"action": "terminate", "time": "2001-01-01T00:00:00Z"})"}) {
    EXPECT_EQ(read_aws_action(lie, kNow).status().code(), ErrorCode::kInvalidArgument) << lie;
  }
  for (const char* garbage :
       {"", "null", "[]", "terminate", R"({"action": 3, "time": "2026-09-18T02:55:20Z"})",
        R"({"action": "stop"})", R"({"action": "stop", "time": 17})",
        R"({"action": "stop", "time": "2026-13-18T02:55:20Z"})",
        R"({"action": "stop", "time": "2026-09-18T02:55:20Z and more"})",
        R"({"action": "none", "time": "2026-09-18T02:55:20Z"})"}) {
    EXPECT_EQ(read_aws_action(garbage, kNow).status().code(), ErrorCode::kInvalidArgument)
        << garbage;
  }
}

TEST(Preemption, WordsOfGcpAndTokensOfAws) {
  EXPECT_TRUE((*read_gcp_preempted("TRUE\n")).has_value());
  EXPECT_FALSE((*read_gcp_preempted("FALSE")).has_value());
  for (const char* garbage : {"", "true", "TRUE FALSE", "<html>TRUE</html>"})
    EXPECT_FALSE(read_gcp_preempted(garbage).ok()) << garbage;
  EXPECT_EQ(read_aws_token("AQAAA_x-1==\n").value_or(""), "AQAAA_x-1==");
  for (const std::string& garbage :
       {std::string(), std::string("two words"), std::string("a\r\nX-Evil: 1"),
        std::string("<html>"), std::string(2000, 'a')}) {
    EXPECT_FALSE(read_aws_token(garbage).ok()) << garbage;
  }
}

TEST(Preemption, UrlsOfMetadataEndpoints) {
  EXPECT_EQ(*PreemptionUrl::parse("aws"),
            (PreemptionUrl{PreemptionUrl::Kind::kAws, "169.254.169.254", "80"}));
  EXPECT_EQ(*PreemptionUrl::parse("gcp+http://127.0.0.1:8080/"),
            (PreemptionUrl{PreemptionUrl::Kind::kGcp, "127.0.0.1", "8080"}));
  EXPECT_EQ(*PreemptionUrl::parse("aws+http://[fd00:ec2::254]"),
            (PreemptionUrl{PreemptionUrl::Kind::kAws, "fd00:ec2::254", "80"}));
  EXPECT_EQ(*PreemptionUrl::parse("aws+http://[::1]:81"),
            (PreemptionUrl{PreemptionUrl::Kind::kAws, "::1", "81"}));
  for (const char* wrong : {"", "http://h", "aws+https://h", "aws+http://", "aws+http://h:",
                            "aws+http://h:0", "aws+http://h:65536", "aws+http://h:12x",
                            "aws+http://[::1", "aws+http://u@h", "aws+http://h/path", "azure"}) {
    EXPECT_EQ(PreemptionUrl::parse(wrong).status().code(), ErrorCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace runtime
