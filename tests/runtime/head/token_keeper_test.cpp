// The change of the cluster's token, as the head sees it.
#include "runtime/head/token_keeper.h"

#include "head_fixture.h"
#include "runtime/core/clock.h"
#include "runtime/transport/token_key.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class TokenKeeperTest : public ::testing::Test {
 protected:
  TokenKeeperTest() {
    nodes_[beside_].is_head = true;
    nodes_[other_];
  }
  Status ask(const std::string& token, std::chrono::milliseconds grace = 60s) {
    answer_.reset();
    keeper_.change({token, grace}, 10s, nodes_,
                   [this](Result<ControlAnswer> answer) { answer_ = answer.status(); });
    return answer_.value_or(Status());
  }
  /// What the node of the head is asked, and says.
  void expected(const std::string& token, const Status& said = {}) {
    auto asked = links_.take<control::ExpectToken>();
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->node, beside_);
    EXPECT_EQ(std::get<control::ExpectToken>(asked->request.body).token, token);
    said.ok() ? asked->answer(ControlAnswer{}) : asked->answer(said);
  }
  std::vector<std::string> accepted() const { return keyring_.accepted(); }

  const std::string first_ = "0b7e41c95d38f2a66c90e17d43b5fa82";
  const std::string second_ = "6f1d2b9c04e87a5335c1e0d9f7a2b846";
  const std::string third_ = "e29b74a8513f06dc97ab15c3d8e4f260";
  const NodeId beside_ = NodeId::random();
  const NodeId other_ = NodeId::random();
  TokenKeeper::Nodes nodes_;
  RecordingLinks links_;
  Keyring keyring_{first_};
  std::vector<TokenState> recorded_;
  TokenKeeper keeper_{keyring_, links_,
                      [this](const TokenState& changed) { recorded_.push_back(changed); }};
  std::optional<Status> answer_;
};

TEST_F(TokenKeeperTest, IsWrittenDownNextToTheHeadThenRecordedThenTold) {
  (void)ask(second_);
  EXPECT_FALSE(answer_);
  EXPECT_TRUE(recorded_.empty());
  EXPECT_EQ(accepted(), std::vector<std::string>{first_});
  expected(second_);
  EXPECT_EQ(answer_, Status());
  ASSERT_EQ(recorded_.size(), 1u);
  EXPECT_EQ(recorded_[0].token, second_);
  EXPECT_EQ(recorded_[0].version, 1u);
  ASSERT_EQ(recorded_[0].earlier.size(), 1u);
  EXPECT_EQ(recorded_[0].earlier[0].token, first_);
  EXPECT_EQ(recorded_[0].earlier[0].left, 60s);
  EXPECT_EQ(accepted(), (std::vector<std::string>{second_, first_}));
  std::set<NodeId> told;
  for (const auto& [node, event] : links_.events) {
    told.insert(node);
    EXPECT_EQ(std::get<control::TokenChanged>(event).state.token, second_);
  }
  EXPECT_EQ(told, (std::set<NodeId>{beside_, other_}));
}

TEST_F(TokenKeeperTest, StaysWhereItCannotBeWrittenDown) {
  (void)ask(second_);
  expected(second_, resource_exhausted("the disk is full"));
  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(answer_->message().find("stays as it is"), std::string::npos);
  EXPECT_TRUE(recorded_.empty());
  EXPECT_EQ(accepted(), std::vector<std::string>{first_});
  EXPECT_TRUE(links_.events.empty());
}

// A disk that stalls for longer than the grace time: members know the first token alone meanwhile.
TEST_F(TokenKeeperTest, StaysUntilTheChangeIsRecorded) {
  links_.journal_stalls = true;
  (void)ask(second_, 5s);
  expected(second_);
  ASSERT_EQ(recorded_.size(), 1u);
  EXPECT_FALSE(answer_);
  EXPECT_EQ(keyring_.tokens().present, first_);
  EXPECT_EQ(accepted(), std::vector<std::string>{first_});
  EXPECT_TRUE(links_.events.empty());
  EXPECT_EQ(ask(third_).code(), ErrorCode::kUnavailable) << "one at a time";
  keeper_.tell(other_);  // one that joins meanwhile
  EXPECT_EQ(std::get<control::TokenChanged>(links_.events[0].second).state.token, first_);

  answer_.reset();
  ASSERT_EQ(links_.unrecorded.size(), 1u);
  links_.unrecorded[0]();
  EXPECT_EQ(accepted(), (std::vector<std::string>{second_, first_}));
  EXPECT_GT(keyring_.tokens().also[0].until, deadline_after(4s)) << "its time begins now";
  EXPECT_EQ(links_.events.size(), 3u);
  EXPECT_EQ(std::get<control::TokenChanged>(links_.events[2].second).state.token, second_);
}

TEST_F(TokenKeeperTest, ARepetitionFindsItDone) {
  (void)ask(second_);
  EXPECT_EQ(ask(third_).code(), ErrorCode::kUnavailable) << "one at a time";
  (void)ask(second_);
  expected(second_);
  EXPECT_EQ(ask(second_), Status());
  EXPECT_EQ(answer_, Status());
  EXPECT_EQ(recorded_.size(), 1u);
}

TEST_F(TokenKeeperTest, TwoReplacedOnesCountEachForItsTime) {
  (void)ask(second_, 60s);
  expected(second_);
  (void)ask(third_, 30s);
  expected(third_);
  EXPECT_EQ(accepted(), (std::vector<std::string>{third_, second_, first_}));
  EXPECT_EQ(recorded_.back().version, 2u);
  // Back to one that has gone: it counts as the present one alone.
  (void)ask(first_, 30s);
  expected(first_);
  EXPECT_EQ(accepted(), (std::vector<std::string>{first_, third_, second_}));
}

TEST_F(TokenKeeperTest, RefusesWhatIsNoToken) {
  for (const std::string& token :
       {std::string(), std::string("guess"), std::string("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        submitter_token(second_), first_}) {
    EXPECT_EQ(ask(token).code(), ErrorCode::kInvalidArgument) << token;
  }
  for (const auto grace : {0ms, 4999ms, -1ms, std::chrono::milliseconds(24h) + 1ms})
    EXPECT_EQ(ask(second_, grace).code(), ErrorCode::kInvalidArgument) << grace.count();
  EXPECT_FALSE(links_.take<control::ExpectToken>());
}

TEST_F(TokenKeeperTest, ANewHeadKnowsWhatIsLeftOfTheirTime) {
  const auto now = std::chrono::milliseconds(unix_milliseconds());
  keeper_.restore({second_, 4, {{first_, 60s, now + 20s}, {third_, 60s, now - 1s}}});
  EXPECT_EQ(accepted(), (std::vector<std::string>{second_, first_}));
  keeper_.tell(other_);
  ASSERT_EQ(links_.events.size(), 1u);
  const TokenState& told = std::get<control::TokenChanged>(links_.events[0].second).state;
  EXPECT_EQ(told.version, 4u);
  ASSERT_EQ(told.earlier.size(), 1u);
  EXPECT_LE(told.earlier[0].left, 20s);
  EXPECT_GT(told.earlier[0].left, 10s);
  // The clock was set back by a year meanwhile.
  keeper_.restore({second_, 4, {{first_, 60s, now + 24h * 365}}});
  keeper_.tell(other_);
  EXPECT_LE(std::get<control::TokenChanged>(links_.events[1].second).state.earlier[0].left, 60s);
}

}  // namespace
}  // namespace runtime
