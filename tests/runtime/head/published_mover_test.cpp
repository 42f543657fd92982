// Copies of published objects on their way off a drained node.
#include "runtime/head/published_mover.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class PublishedMoverTest : public PartTest {
 protected:
  PublishedMoverTest() : node_(add_node(1)), first_(add_node(1)), second_(add_node(1)) {
    drained_.set(node_, time_ + 20s);
    publish({location(node_)});
  }
  static ObjectLocation location(NodeId node) {
    ObjectLocation copy;
    copy.node = node;
    return copy;
  }
  void publish(std::vector<ObjectLocation> copies) {
    context_.commit(command::Publish{name_, ++version_, std::move(copies), ""});
  }
  std::optional<SentRequest> asked() { return links_.take<ObjectControl>(); }

  const PublishedTable::Name name_{"space", "weights"};
  std::uint64_t version_ = 0;
  const NodeId node_, first_, second_;
  int answers_ = 0;
  DrainedNodes drained_{context_};
  PublishedObjects published_{context_};
  PublishedMover mover_{context_, drained_, published_, [this](NodeId) { ++answers_; }};
};

TEST_F(PublishedMoverTest, AnotherNodesCopyTakesThePlaceOfTheDrainedOnes) {
  EXPECT_TRUE(mover_.has_sole_copies(node_));
  mover_.move(node_);
  EXPECT_TRUE(mover_.is_moving(node_));
  mover_.move(node_);
  auto sent = asked();
  ASSERT_TRUE(sent);
  EXPECT_FALSE(asked()) << "once";
  sent->answer(ControlAnswer{ObjectControlAnswer{location(sent->node)}});
  EXPECT_FALSE(mover_.is_moving(node_));
  EXPECT_FALSE(mover_.has_sole_copies(node_));
  EXPECT_EQ(answers_, 1);
}

TEST_F(PublishedMoverTest, AfterARefusalAnotherNodeIsAskedALittleLater) {
  mover_.move(node_);
  auto first = asked();
  ASSERT_TRUE(first);
  first->answer(unavailable("no room"));
  mover_.move(node_);
  EXPECT_FALSE(asked());
  time_ = mover_.next_attempt(node_);
  mover_.move(node_);
  auto second = asked();
  ASSERT_TRUE(second);
  EXPECT_NE(second->node, first->node);
  second->answer(unavailable("no room"));
  time_ = mover_.next_attempt(node_);
  mover_.move(node_);
  EXPECT_TRUE(asked()) << "all have refused: they are asked again";
}

TEST_F(PublishedMoverTest, ACopyOnANodeThatStaysIsEnough) {
  context_.commit(command::Unpublish{name_, version_});
  publish({location(node_), location(first_)});
  EXPECT_FALSE(mover_.has_sole_copies(node_));
  drained_.set(first_, time_ + 20s);
  EXPECT_TRUE(mover_.has_sole_copies(node_));
}

}  // namespace
}  // namespace runtime
