// Objects of a node that was drained, found on the nodes that took them over.
#include "runtime/head/moved_objects.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class MovedObjectsTest : public PartTest {
 protected:
  MovedObjectsTest() : node_(add_node(1)), first_(add_node(1)), second_(add_node(1)) {}

  Answer find() {
    control::FindObject body;
    body.node = node_;
    return ask(objects_, body, first_);
  }
  void drain() {
    context_.commit(command::NodeDrains{node_, NodeDrain{"preemption", 20s, {}, 0, ""}});
    drained_.set(node_, time_ + 20s);
  }
  SentRequest question() {
    auto sent = links_.take<ObjectControl>();
    EXPECT_TRUE(sent);
    return sent ? std::move(*sent) : SentRequest{};
  }

  const NodeId node_, first_, second_;
  DrainedNodes drained_{context_};
  MovedObjects objects_{context_, drained_};
};

TEST_F(MovedObjectsTest, TheFirstNodeThatHasItAnswers) {
  drain();
  const Answer found = find();
  ASSERT_EQ(links_.requests.size(), 2u) << "the node itself is not asked";
  SentRequest one = question(), other = question();
  one.answer(not_found("not here"));
  EXPECT_FALSE(found->has_value());
  ObjectLocation location;
  location.node = other.node;
  other.answer(ControlAnswer{ObjectControlAnswer{location}});
  EXPECT_TRUE(status(found).ok());
}

TEST_F(MovedObjectsTest, IsNotFoundWhenNoNodeHasIt) {
  drain();
  context_.commit(command::RemoveNode{node_, "it was drained and has left"});
  drained_.erase(node_);
  const Answer found = find();
  question().answer(not_found("not here"));
  question().answer(unavailable("silent"));
  EXPECT_EQ(status(found).code(), ErrorCode::kNotFound);
  EXPECT_EQ(status(found).message(),
            "it was drained and has left; no other node has taken the object over");
}

TEST_F(MovedObjectsTest, NodesThatWereNotDrainedHaveHandedNothingOver) {
  EXPECT_EQ(status(find()).code(), ErrorCode::kNotFound);
  EXPECT_TRUE(links_.requests.empty());
}

}  // namespace
}  // namespace runtime
