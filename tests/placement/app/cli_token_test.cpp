#include "placement/app/cli_token.h"

#include <fstream>
#include <optional>

#include "runtime/control/token_strength.h"
#include "runtime/transport/token_key.h"
#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

using namespace std::chrono_literals;
namespace control = runtime::control;

class TokenCommandTest : public ::testing::Test {
 protected:
  TokenCommandTest() {
    options_.address = cluster_.address();
    cluster_.on<control::ChangeToken>([this](const control::ChangeToken& request) {
      changed_ = request;
      return answer_.ok() ? runtime::Result<runtime::ControlAnswer>(std::monostate()) : answer_;
    });
  }
  Said say_token() {
    return said_by([&] { return token_command(options_); });
  }

  FakeCluster cluster_;
  TokenCommandOptions options_;
  runtime::Status answer_;
  std::optional<control::ChangeToken> changed_;
};

TEST_F(TokenCommandTest, PrintsTheClustersTokenOrOneForSubmittersAlone) {
  EXPECT_EQ(say_token().out, std::string(runtime::FakeNode::kToken) + "\n");
  options_.submitter = true;
  const std::string submitters = runtime::submitter_token(runtime::FakeNode::kToken);
  EXPECT_EQ(say_token().out, submitters + "\n");
  const support::ScopedVariable token("STARLING_TOKEN", submitters.c_str());
  const Said again = say_token();
  EXPECT_EQ(again.code, 1);
  EXPECT_EQ(again.out, "") << "it would be no submitter's token";
  expect_said(again.err, {"STARLING_TOKEN is a submitter's token already"});
}

TEST_F(TokenCommandTest, PrintsTheNewTokenAndWhereElseItIsNeeded) {
  options_.change = true;
  const Said said = say_token();
  EXPECT_EQ(said.code, 0) << said.err;
  ASSERT_TRUE(changed_);
  EXPECT_EQ(said.out, changed_->token + "\n") << "and nothing else, for a file";
  EXPECT_GE(runtime::estimated_bits(changed_->token), runtime::kTokenBitsMin);
  EXPECT_EQ(changed_->grace, 10min);
  expect_said(said.err, {"counts for 10 min still", "STARLING_TOKEN_FILE", "token --submitter",
                         "metrics --key"});
  EXPECT_EQ(said.err.find(changed_->token), std::string::npos) << "it is a secret";
}

TEST_F(TokenCommandTest, TakesTheFilesTokenWithItsGrace) {
  const support::TemporaryFolder folder;
  options_.change = true;
  options_.file = folder.file("token");
  options_.grace = "5s";
  const Said missing = say_token();
  EXPECT_EQ(missing.code, 1);
  expect_said(missing.err, {options_.file});
  EXPECT_FALSE(changed_);
  std::ofstream(options_.file) << "another\n";
  EXPECT_EQ(say_token().out, "another\n");
  ASSERT_TRUE(changed_);
  EXPECT_EQ(changed_->token, "another");
  EXPECT_EQ(changed_->grace, 5s);
}

TEST_F(TokenCommandTest, SaysWhetherAFailureMayHaveChangedIt) {
  options_.change = true;
  options_.grace = "soon";
  const Said mistake = say_token();
  EXPECT_EQ(mistake.code, 1);
  expect_said(mistake.err, {"--grace", "soon"});
  EXPECT_FALSE(changed_);
  options_.grace = {};
  answer_ = runtime::invalid_argument("the token is easy to guess");
  const Said refused = say_token();
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(refused.err, "error: the token is easy to guess\n");
  for (const auto& silent : {runtime::unavailable("the head is away"),
                             runtime::deadline_exceeded("no answer in time")}) {
    answer_ = silent;
    const Said unknown = say_token();
    EXPECT_EQ(unknown.code, 1);
    EXPECT_EQ(unknown.out, "");
    expect_said(unknown.err, {std::string(silent.message()), "may have been changed all the same"});
  }
}

}  // namespace
}  // namespace placement
