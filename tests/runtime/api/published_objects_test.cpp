// Published objects as programs name them. How one is found: tests/runtime/call/published_test.cpp.
#include "runtime/api/published_objects.h"

#include "runtime/call/get.h"
#include "tests/runtime/api/api_fixture.h"
#include "tests/runtime/call/fake_objects.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class PublishedApiTest : public test::ApiTest {
 protected:
  ObjectRef<int> five() {
    return ObjectRef<int>(
        ObjectState::ready(connection_.process->object_context(), test::small_value(5)));
  }
  void set_version(std::uint64_t version) {
    set_answer(ControlAnswer{ObjectControlAnswer{
        PublishedObject{"w", version, std::string(five().state()->value().bytes.text())}}});
  }

  PublishedApi published_{connection_};
};

TEST_F(PublishedApiTest, AVersionIsPublishedOnceTheHeadSaysSo) {
  EXPECT_TRUE(published_.publish("w", 7, five(), {.name_space = "team"}).ok());
  const auto request = asked_about_objects<control::Publish>();
  EXPECT_EQ(request.name_space, "team");
  EXPECT_EQ(request.version, 7u);
  EXPECT_EQ(request.type, typeid(int).name());
  set_answer(invalid_argument("version 7 is not larger"));
  EXPECT_EQ(published_.publish("w", 7, five()), invalid_argument("version 7 is not larger"));
}

TEST_F(PublishedApiTest, AFutureWaitsForTheFirstThatComesWhereLatestDoesNotWait) {
  set_version(9);
  const auto latest = published_.latest<int>("w");
  ASSERT_TRUE(latest.ok()) << latest.status().to_string();
  EXPECT_EQ(latest->version, 9u);
  EXPECT_EQ(get_value(latest->ref, Deadline::max()).value_or(0), 5);
  EXPECT_FALSE(asked_about_objects<control::FindPublished>().wait);
  const ObjectRef<int> awaited = published_.when<int>("w", {});
  EXPECT_EQ(get_value(awaited, Deadline::max()).value_or(0), 5);
  const auto request = asked_about_objects<control::FindPublished>();
  EXPECT_EQ(request.version, 1u);
  EXPECT_TRUE(request.wait);
}

TEST_F(PublishedApiTest, AFutureFailsAsTheQuestionDid) {
  set_answer(object_lost("its nodes are gone"));
  const ObjectRef<int> awaited = published_.when<int>("w", {.at_least = 3});
  EXPECT_EQ(get_value(awaited, Deadline::max()).status().code(), ErrorCode::kObjectLost);
}

TEST_F(PublishedApiTest, ARuntimeThatIsNotStartedAsksNothing) {
  const Connection none;
  PublishedApi published(none);
  EXPECT_EQ(published.publish("w", 1, five()).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(published.unpublish("w").code(), ErrorCode::kUnavailable);
  EXPECT_EQ(get_value(published.when<int>("w", {}), Deadline::max()).status().code(),
            ErrorCode::kUnavailable);
  EXPECT_FALSE(published.watch("w", [](const PublishedEvent&) {}).is_active());
  EXPECT_EQ(requests(), 0u);
}

}  // namespace
}  // namespace runtime
