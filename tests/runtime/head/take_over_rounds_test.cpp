// Rounds of questions whether nodes have taken objects over.
#include "runtime/head/take_over_rounds.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class TakeOverRoundsTest : public PartTest {
 protected:
  TakeOverRoundsTest() : node_(add_node(1)), first_(add_node(1)), second_(add_node(1)) {}

  const NodeId node_, first_, second_;
  int ended_ = 0;
  TakeOverRounds rounds_{context_, [this](NodeId node) {
                           EXPECT_EQ(node, node_);
                           ++ended_;
                         }};
};

TEST_F(TakeOverRoundsTest, EndWithTheLastAnswerAndSumWhatIsLeft) {
  rounds_.begin(node_, 1s);
  ASSERT_EQ(links_.requests.size(), 2u) << "not the node itself";
  links_.take<control::TakeOver>()->answer(ControlAnswer{std::int64_t{2}});
  EXPECT_TRUE(rounds_.is_under_way(node_));
  links_.take<control::TakeOver>()->answer(unavailable("silent"));
  EXPECT_FALSE(rounds_.is_under_way(node_));
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(rounds_.failed(node_), 3u) << "a member that has not answered counts as one";
}

TEST_F(TakeOverRoundsTest, AnswersOfARoundBeforeDoNotCount) {
  rounds_.begin(node_, 1s);
  auto late = links_.take<control::TakeOver>();
  links_.requests.clear();
  rounds_.begin(node_, 1s);
  late->answer(ControlAnswer{std::int64_t{5}});
  EXPECT_EQ(rounds_.failed(node_), 0u);
  rounds_.cancel(node_);
  links_.take<control::TakeOver>()->answer(ControlAnswer{std::int64_t{5}});
  EXPECT_EQ(ended_, 0);
}

TEST_F(TakeOverRoundsTest, EndsAtOnceWithoutOtherNodes) {
  for (NodeId other : {first_, second_}) context_.commit(command::RemoveNode{other, "gone"});
  rounds_.begin(node_, 1s);
  EXPECT_EQ(ended_, 1);
}

}  // namespace
}  // namespace runtime
