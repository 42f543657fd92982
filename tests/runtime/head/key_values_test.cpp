// Requests about the key-value pairs of jobs.
#include "runtime/head/key_values.h"

#include <limits>

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class KeyValuesTest : public PartTest {
 protected:
  KeyValuesTest() : job_(add_job(add_node(4))), other_(add_job(NodeId::random())) {}

  template <class Body>
  Answer ask(Body body, JobId job) {
    return PartTest::ask(values_, std::move(body), {}, job);
  }
  template <class Body>
  Answer ask(Body body) {
    return ask(std::move(body), job_);
  }
  Status put(const std::string& key, const std::string& value) {
    return status(ask(control::KvPut{key, value}));
  }
  Status add(std::int64_t amount) { return status(ask(control::KvAdd{"sum", amount})); }
  std::string value(const std::string& key) const {
    const std::string* found = tables_.pairs().find(job_, key);
    return found ? *found : "none";
  }
  template <class T>
  static T said(const Answer& answer) {
    EXPECT_TRUE(status(answer).ok()) << status(answer).message();
    return status(answer).ok() ? std::get<T>(***answer) : T();
  }

  const JobId job_, other_;
  KeyValues values_{context_};
};

TEST_F(KeyValuesTest, AValueIsReadAsItWasPut) {
  EXPECT_EQ(status(ask(control::KvGet{"key"})).code(), ErrorCode::kNotFound);
  EXPECT_TRUE(put("key", "old").ok());
  EXPECT_TRUE(put("key", "new").ok());
  EXPECT_EQ(said<std::string>(ask(control::KvGet{"key"})), "new");
  EXPECT_EQ(status(ask(control::KvGet{"key"}, other_)).code(), ErrorCode::kNotFound);
}

TEST_F(KeyValuesTest, WhoWaitsIsAnsweredByAnyWayOfSettingIt) {
  const Answer first = ask(control::KvGet{"sum", true}), second = ask(control::KvGet{"sum", true});
  const Answer elsewhere = ask(control::KvGet{"sum", true}, other_);
  const Answer another = ask(control::KvGet{"key", true});
  EXPECT_FALSE(first->has_value());
  EXPECT_TRUE(add(3).ok());
  EXPECT_EQ(said<std::string>(first), "3");
  EXPECT_EQ(said<std::string>(second), "3");
  EXPECT_FALSE(another->has_value());
  EXPECT_TRUE(put("key", "").ok());
  EXPECT_EQ(said<std::string>(another), "");
  EXPECT_FALSE(elsewhere->has_value()) << "another job's";
  EXPECT_EQ(said<std::string>(ask(control::KvGet{"key", true})), "") << "it is there";
}

TEST_F(KeyValuesTest, WaitingEndsAtTheDeadline) {
  EXPECT_EQ(values_.next_tick(), Deadline::max());
  const Answer waits = ask(control::KvGet{"key", true});
  const Deadline due = values_.next_tick();
  EXPECT_EQ(due, time_ + 10s);
  values_.tick(due - 1ns);
  EXPECT_FALSE(waits->has_value());
  values_.tick(due);
  EXPECT_EQ(status(waits).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_NE(status(waits).message().find("'key'"), std::string::npos);
  EXPECT_TRUE(put("key", "later").ok()) << "and is not answered again";
}

TEST_F(KeyValuesTest, ASumBeginsAtZero) {
  EXPECT_EQ(said<std::int64_t>(ask(control::KvAdd{"sum", -5})), -5);
  EXPECT_EQ(said<std::int64_t>(ask(control::KvAdd{"sum", 7})), 2);
  EXPECT_EQ(value("sum"), "2");
}

TEST_F(KeyValuesTest, OnlyNumbersAreAddedTo) {
  for (const char* text : {"", "text", "5x", "1.5", " 5", "9223372036854775808"}) {
    EXPECT_TRUE(put("sum", text).ok());
    EXPECT_EQ(add(1).code(), ErrorCode::kInvalidArgument) << text;
    EXPECT_EQ(value("sum"), text) << "it is as it was";
  }
}

TEST_F(KeyValuesTest, ASumThatOverflowsIsRefused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(add(kMost).ok());
  EXPECT_EQ(add(1).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(value("sum"), std::to_string(kMost));
  EXPECT_TRUE(put("sum", "-2").ok());
  EXPECT_EQ(add(std::numeric_limits<std::int64_t>::min()).code(), ErrorCode::kInvalidArgument);
}

TEST_F(KeyValuesTest, KeysAndValuesHaveTheirLengths) {
  options_.key_bytes_max = 3;
  options_.value_bytes_max = 4;
  EXPECT_EQ(put("", "1").code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(put("long", "1").code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(put("key", "1234").ok());
  EXPECT_EQ(put("key", "12345").code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(value("key"), "1234");
}

TEST_F(KeyValuesTest, TheNumberOfAJobsKeysIsLimited) {
  options_.keys_per_job_max = 2;
  EXPECT_TRUE(put("a", "1").ok());
  EXPECT_TRUE(put("b", "1").ok());
  EXPECT_EQ(put("c", "1").code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(add(1).code(), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(put("a", "2").ok());
  EXPECT_TRUE(status(ask(control::KvPut{"c", "1"}, other_)).ok()) << "each job for itself";
  ask(control::KvDelete{"b"});
  EXPECT_TRUE(put("c", "1").ok());
}

TEST_F(KeyValuesTest, ADeletionSaysWhetherThereWasOne) {
  EXPECT_EQ(said<std::int64_t>(ask(control::KvDelete{"key"})), 0);
  EXPECT_TRUE(put("key", "value").ok());
  EXPECT_EQ(said<std::int64_t>(ask(control::KvDelete{"key"}, other_)), 0);
  EXPECT_EQ(said<std::int64_t>(ask(control::KvDelete{"key"})), 1);
  EXPECT_EQ(value("key"), "none");
  EXPECT_EQ(said<std::int64_t>(ask(control::KvDelete{"key"})), 0);
}

TEST_F(KeyValuesTest, NothingIsSetForAJobThatHasEnded) {
  context_.commit(command::EndJob{job_, JobOutcome::kFailed});
  EXPECT_EQ(put("key", "value").code(), ErrorCode::kCancelled);
  EXPECT_EQ(add(1).code(), ErrorCode::kCancelled);
  EXPECT_TRUE(status(ask(control::KvPut{"key", "value"}, JobId())).ok()) << "of no job";
}

}  // namespace
}  // namespace runtime
