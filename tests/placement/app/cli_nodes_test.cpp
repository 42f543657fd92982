#include "placement/app/cli_nodes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/runtime/control/fake_node.h"
#include "tests/support/temporary_folder.h"

namespace placement {
namespace {

using namespace std::chrono_literals;
using runtime::FakeNode;
using runtime::NodeInfo;
using runtime::Status;
using Texts = std::vector<std::string>;
namespace control = runtime::control;

/// A cluster of three nodes, of which the last is gone. None has a session on this machine.
class NodeSetTest : public ::testing::Test {
 protected:
  NodeSetTest() {
    for (FakeNode* node : {&first_, &second_, &gone_}) {
      NodeInfo info;
      info.node = node->id;
      info.address = node->endpoint().to_string();
      state_.nodes.push_back(info);
    }
    gone_.close();
  }
  void SetUp() override {
    auto set = NodeSet::connect(state_.nodes[0].address);
    ASSERT_TRUE(set.ok()) << set.status().to_string();
    set_ = *std::move(set);
  }
  /// The answers to a question for each node's metrics, with the node's place.
  Texts ask(std::chrono::milliseconds patience = 20s) {
    Texts answers;
    set_->ask_all<std::string>(
        control::ReadMetrics(),
        [&](const NodeInfo& node, const std::string& text) {
          answers.push_back((node.node == first_.id ? "first: " : "second: ") + text);
        },
        patience);
    return answers;
  }
  static void answer(FakeNode& node, runtime::ObserveAnswer answer) {
    (void)node.next<runtime::ObserveControl>();
    node.answer<runtime::ObserveControl>(runtime::ControlAnswer(std::move(answer)));
  }
  static void refuse(FakeNode& node, const Status& why) {
    (void)node.next<runtime::ObserveControl>();
    node.answer<runtime::ObserveControl>(why);
  }
  Status trouble(std::size_t at) { return set_->nodes()[at].trouble; }

  const support::TemporaryFolder folder_;
  const support::ScopedVariable root_{"STARLING_SESSION_ROOT", folder_.path().c_str()};
  const support::ScopedVariable token_{"STARLING_TOKEN", FakeNode::kToken};
  runtime::ClusterState state_;
  FakeNode first_{
      [this](const runtime::ControlRequest::Body& body, runtime::ControlAnswerer& answer) {
        if (!std::holds_alternative<control::QueryCluster>(body)) return false;
        answer(runtime::ControlAnswer(state_));
        return true;
      }};
  FakeNode second_, gone_;
  std::unique_ptr<NodeSet> set_;
};

TEST_F(NodeSetTest, HasAConnectionWithEachNodeThatCanBeReached) {
  ASSERT_EQ(set_->nodes().size(), 3u);
  EXPECT_EQ(set_->cluster(), state_);
  EXPECT_EQ(set_->address().address, state_.nodes[0].address);
  EXPECT_NE(set_->nodes()[0].client, nullptr);
  EXPECT_NE(set_->nodes()[1].client, nullptr);
  EXPECT_EQ(set_->nodes()[2].client, nullptr);
  EXPECT_TRUE(trouble(1).ok());
  EXPECT_EQ(trouble(2).code(), runtime::ErrorCode::kUnavailable);
  EXPECT_EQ(set_->find(second_.id), &set_->nodes()[1]);
  EXPECT_EQ(set_->find(runtime::NodeId::random()), nullptr);
}

TEST_F(NodeSetTest, AnswersComeInTheOrderOfTheNodes) {
  std::thread nodes([&] {
    answer(second_, std::string("2"));
    answer(first_, std::string("1"));
  });
  EXPECT_EQ(ask(), (Texts{"first: 1", "second: 2"}));
  nodes.join();
  EXPECT_TRUE(trouble(0).ok());
  EXPECT_TRUE(trouble(1).ok());
  EXPECT_EQ(trouble(2).code(), runtime::ErrorCode::kUnavailable) << "why it was not asked";
}

TEST_F(NodeSetTest, ANodeWithoutAnAnswerHoldsUpNoOther) {
  std::thread nodes([&] { answer(first_, std::string("1")); });
  EXPECT_EQ(ask(50ms), Texts{"first: 1"});
  nodes.join();
  EXPECT_EQ(trouble(1).code(), runtime::ErrorCode::kDeadlineExceeded);
}

TEST_F(NodeSetTest, ATroubleIsThatOfTheLastQuestion) {
  std::thread nodes([&] {
    refuse(first_, runtime::unimplemented("no metrics"));
    answer(second_, runtime::Numbers());
    answer(first_, std::string("1"));
    answer(second_, std::string("2"));
  });
  EXPECT_EQ(ask(), Texts{});
  EXPECT_EQ(trouble(0), runtime::unimplemented("no metrics"));
  EXPECT_EQ(trouble(1).code(), runtime::ErrorCode::kInternal) << "it was not asked for that";
  EXPECT_EQ(ask(), (Texts{"first: 1", "second: 2"}));
  nodes.join();
  EXPECT_TRUE(trouble(0).ok());
  EXPECT_TRUE(trouble(1).ok());
}

TEST_F(NodeSetTest, AsksEachNodeItsOwnQuestions) {
  std::thread nodes([&] {
    answer(second_, std::string("a"));
    answer(second_, std::string("b"));
  });
  const auto answers = set_->ask_each(
      {{1, control::ReadMetrics()}, {2, control::ReadMetrics()}, {1, control::ListWorkers()}}, 20s);
  nodes.join();
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(std::get<std::string>(*answers[0]), "a");
  EXPECT_EQ(answers[1].status(), trouble(2));
  EXPECT_EQ(std::get<std::string>(*answers[2]), "b");
  EXPECT_TRUE(set_->ask_each({}, 20s).empty());
}

TEST_F(NodeSetTest, NamesTheNodesThatAreSilent) {
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(set_->report_silent());
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("node " + gone_.id.short_hex() + " at " + state_.nodes[2].address),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find(second_.id.short_hex()), std::string::npos) << said;
  set_->nodes().pop_back();
  EXPECT_FALSE(set_->report_silent());
}

}  // namespace
}  // namespace placement
