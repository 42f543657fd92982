#include "runtime/control/published_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <variant>

#include "tests/runtime/control/fake_node.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class PublishedClientTest : public ::testing::Test {
 protected:
  ~PublishedClientTest() override { client_.reset(); }
  static Deadline soon() { return deadline_after(20s); }

  /// The question that the node has got, which is what it is expected to be.
  template <class T>
  T asked() {
    const ObjectControl question = node_.next<ObjectControl>();
    const T* expected = std::get_if<T>(&question);
    EXPECT_NE(expected, nullptr);
    return expected ? *expected : T();
  }
  void answer(Result<ControlAnswer> answer) { node_.answer<ObjectControl>(std::move(answer)); }
  Status told() {
    EXPECT_TRUE(comes_true(loop_, [&] { return told_.has_value(); }));
    return on_loop(loop_, [&] { return told_.value_or(internal_error("no answer")); });
  }
  Result<PublishedObject> found() {
    EXPECT_TRUE(comes_true(loop_, [&] { return found_.has_value(); }));
    return on_loop(loop_, [&] { return found_.value_or(internal_error("no answer")); });
  }
  NodeClient::Done done() {
    return [this](Status status) { told_ = std::move(status); };
  }
  void find(const control::FindPublished& question) {
    published_.find(question, soon(),
                    [this](Result<PublishedObject> object) { found_ = std::move(object); });
  }

  FakeNode node_;
  EventLoop loop_;
  std::optional<Status> told_;
  std::optional<Result<PublishedObject>> found_;
  std::unique_ptr<NodeClient> client_ = node_.connect(loop_, Role::kDriver);
  PublishedClient published_{*client_};
};

TEST_F(PublishedClientTest, PublishesAVersion) {
  const control::Publish version{"team", "policy", 7, 2, 1, std::string("bytes"), "f"};
  published_.publish(version, soon(), done());
  EXPECT_EQ(asked<control::Publish>(), version);
  answer(ControlAnswer());
  EXPECT_EQ(told(), Status());
}

TEST_F(PublishedClientTest, SaysWhyAVersionIsRefused) {
  published_.publish({"", "policy", 6, 1, 1, std::string()}, soon(), done());
  (void)asked<control::Publish>();
  answer(invalid_argument("version 6 of 'policy' is not larger than 7"));
  EXPECT_EQ(told(), invalid_argument("version 6 of 'policy' is not larger than 7"));
}

TEST_F(PublishedClientTest, FindsAVersion) {
  const control::FindPublished question{"team", "policy", 7, true, true};
  find(question);
  EXPECT_EQ(asked<control::FindPublished>(), question);
  const PublishedObject object{"policy", 7, std::string("bytes"), "f"};
  answer(ControlAnswer(ObjectControlAnswer(object)));
  EXPECT_EQ(found().value_or({}), object);
}

TEST_F(PublishedClientTest, AnAnswerToSomethingElseIsNone) {
  find({"", "policy", 1});
  (void)asked<control::FindPublished>();
  answer(ControlAnswer(ObjectControlAnswer(ObjectLocation())));
  EXPECT_EQ(found().status().code(), ErrorCode::kInternal);
}

TEST_F(PublishedClientTest, GivesVersionsUp) {
  const control::Unpublish question{"team", "policy", 0};
  published_.unpublish(question, soon(), done());
  EXPECT_EQ(asked<control::Unpublish>(), question);
  node_.close();
  EXPECT_EQ(told().code(), ErrorCode::kUnavailable) << "the node is gone";
}

}  // namespace
}  // namespace runtime
