#include "runtime/node/node_objects.h"

#include "runtime/transport/blocking.h"
#include "tests/runtime/node/fake_head.h"

namespace runtime {
namespace {

class NodeObjectsTest : public ::testing::Test {
 protected:
  NodeObjectsTest() {
    ObjectStoreOptions options;
    options.credentials.node = node_;
    options.capacity_bytes = 16 << 20;
    auto opened = on_loop(loop_, [&] { return NodeObjects::open(loop_, options, head_.ask()); });
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    objects_ = std::move(*opened);
  }
  ~NodeObjectsTest() override {
    on_loop(loop_, [&] {
      objects_.reset();
      return 0;
    });
  }
  Result<ControlAnswer> ask(ObjectControl request) {
    return wait_for<ControlAnswer>(loop_, deadline_after(std::chrono::seconds(20)), [&](auto done) {
      loop_.post([this, done, request]() mutable {
        objects_->serve(request, std::chrono::milliseconds(200),
                        [done](Result<ControlAnswer> answer) { done(std::move(answer)); });
      });
    });
  }

  EventLoop loop_;
  FakeHead head_;
  const NodeId node_ = NodeId::random();
  std::unique_ptr<NodeObjects> objects_;
};

TEST_F(NodeObjectsTest, KeepsNothingThatItWasNotGiven) {
  const auto answer = ask(control::FindObject{ObjectId::random(), NodeId::random()});
  EXPECT_EQ(answer.status().message(), "node " + node_.short_hex() + " does not keep the object");
}

TEST_F(NodeObjectsTest, ListsItsStore) {
  const auto answer = ask(control::ListObjects{});
  ASSERT_TRUE(answer.ok()) << answer.status().to_string();
  const auto& list = std::get<ObjectList>(std::get<ObjectControlAnswer>(*answer));
  EXPECT_TRUE(list.objects.empty());
  ASSERT_EQ(list.stores.size(), 1u);
  EXPECT_EQ(list.stores[0].node, node_);
}

TEST_F(NodeObjectsTest, ServesNoRequestOfPrograms) {
  EXPECT_EQ(ask(control::Publish{}).status().code(), ErrorCode::kUnimplemented);
}

}  // namespace
}  // namespace runtime
