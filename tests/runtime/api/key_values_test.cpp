#include "runtime/api/key_values.h"

#include "tests/runtime/api/api_fixture.h"

namespace runtime {
namespace {

class KeyValueApiTest : public test::ApiTest {
 protected:
  KeyValueApi values_{connection_};
};

TEST_F(KeyValueApiTest, OnlyGetWaitsForTheKey) {
  set_answer(ControlAnswer{std::string("\0value", 6)});
  EXPECT_EQ(values_.get("key").value_or(""), std::string("\0value", 6));
  EXPECT_EQ(asked<control::KvGet>(), (control::KvGet{"key", true}));
  set_answer(not_found("no key 'key'"));
  EXPECT_EQ(values_.try_get("key").status(), not_found("no key 'key'"));
  EXPECT_EQ(asked<control::KvGet>(), (control::KvGet{"key", false}));
}

TEST_F(KeyValueApiTest, ChangesSayWhatTheyHaveChanged) {
  EXPECT_TRUE(values_.put("key", "value").ok());
  EXPECT_EQ(asked<control::KvPut>(), (control::KvPut{"key", "value"}));
  set_answer(ControlAnswer{std::int64_t{-3}});
  EXPECT_EQ(values_.add("sum", -5).value_or(0), -3);
  EXPECT_EQ(asked<control::KvAdd>(), (control::KvAdd{"sum", -5}));
  set_answer(ControlAnswer{std::int64_t{1}});
  EXPECT_TRUE(values_.remove("key").value_or(false));
  EXPECT_EQ(asked<control::KvDelete>(), control::KvDelete{"key"});
  set_answer(ControlAnswer{std::int64_t{0}});
  EXPECT_FALSE(values_.remove("key").value_or(true));
}

TEST_F(KeyValueApiTest, ARuntimeThatDoesNotRunAsksNothing) {
  Connection none, stopped = connection_;
  stopped.stopped = true;
  EXPECT_EQ(KeyValueApi(none).put("key", "value").code(), ErrorCode::kUnavailable);
  EXPECT_EQ(KeyValueApi(none).add("sum", 1).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(KeyValueApi(stopped).get("key").status().code(), ErrorCode::kCancelled);
  EXPECT_EQ(requests(), 0u);
}

}  // namespace
}  // namespace runtime
