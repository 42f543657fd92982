#include "runtime/call/call_target.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/call/registry.h"
#include "runtime/runtime_templates.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

struct Known {
  int f(int number) { return number; }
  int slow(int number) { return number; }
  int forgotten(int number) { return number; }
};
struct Other {
  int f(int number) { return number; }
};
struct Unknown {};

class CallTargetTest : public ::testing::Test {
 protected:
  CallTargetTest() {
    ActorClass& known = registry_.add("Known", typeid(Known));
    known.add(runtime_detail::method_entry<Known>(method("f", &Known::f)));
    MethodEntry slow = runtime_detail::method_entry<Known>(method("slow", &Known::slow));
    slow.timeout = 50ms;
    known.add(std::move(slow));
    registry_.add("Other", typeid(Other))
        .add(runtime_detail::method_entry<Other>(method("f", &Other::f)));
    registry_.seal();
    address_.actor = ActorId::random();
    address_.class_name = "Known";
  }
  void have(const CallerOptions& options) {
    address_.caller_options = encode_caller_options(options);
  }
  const MethodEntry& entry(const CallTarget& target, const MethodKey& key) {
    auto found = target.find_method(registry_, typeid(Known), key);
    EXPECT_TRUE(found.ok()) << found.status().to_string();
    return **found;
  }

  Registry registry_;
  ActorAddress address_;
};

TEST_F(CallTargetTest, FindsMethodsOfItsClassAlone) {
  const CallTarget target(address_);
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(entry(target, MethodKey::of(&Known::f)).name, "f");
    EXPECT_EQ(entry(target, MethodKey::of(&Known::slow)).name, "slow");
    const Status other =
        target.find_method(registry_, typeid(Other), MethodKey::of(&Other::f)).status();
    EXPECT_EQ(other,
              invalid_argument("actor " + target.id().short_hex() + " is a Known, not a Other"));
    const Status unknown =
        target.find_method(registry_, typeid(Unknown), MethodKey::of(&Known::f)).status();
    EXPECT_EQ(unknown.code(), ErrorCode::kInvalidArgument);
    const Status forgotten =
        target.find_method(registry_, typeid(Known), MethodKey::of(&Known::forgotten)).status();
    EXPECT_EQ(forgotten.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(forgotten.message().find("register_actor<Known>"), std::string::npos)
        << forgotten.message();
  }
}

TEST_F(CallTargetTest, ACallMayTakeTheShortestOfItsLimits) {
  have({.method_timeouts = {{"f", 30ms}, {"slow", 100ms}}});
  const CallTarget target(address_);
  const MethodEntry& f = entry(target, MethodKey::of(&Known::f));
  const MethodEntry& slow = entry(target, MethodKey::of(&Known::slow));
  EXPECT_EQ(target.limit(f, 10ms), 10ms) << "the call's";
  EXPECT_EQ(target.limit(slow, 10ms), 10ms);
  EXPECT_EQ(target.limit(f, 1000ms), 30ms) << "the actor's";
  EXPECT_EQ(target.limit(slow, 1000ms), 50ms) << "the method's";
  address_.caller_options.clear();
  const CallTarget plain(address_);
  EXPECT_EQ(plain.limit(f, 1000ms), 1000ms);
  EXPECT_EQ(plain.limit(slow, 1000ms), 50ms);
}

TEST_F(CallTargetTest, AnActorWithATighterLimitThanItsMethodHasThat) {
  have({.method_timeouts = {{"slow", 20ms}}});
  const CallTarget target(address_);
  EXPECT_EQ(target.limit(entry(target, MethodKey::of(&Known::slow)), 1000ms), 20ms);
}

TEST_F(CallTargetTest, DescribesTheActorAsItsAddressDoes) {
  have({.out_of_order = true});
  const CallTarget target(address_);
  EXPECT_TRUE(target.is_out_of_order());
  EXPECT_EQ(target.describe(), "Known " + address_.actor.short_hex());
  ActorAddress filled;
  filled.unix_path = "/run/worker";
  target.describe(filled);
  EXPECT_EQ(filled.actor, address_.actor);
  EXPECT_EQ(filled.class_name, "Known");
  EXPECT_EQ(filled.caller_options, address_.caller_options);
  EXPECT_EQ(filled.unix_path, "/run/worker") << "where it is stays";
}

TEST_F(CallTargetTest, OptionsThatCannotBeReadAreTheDefaultOnes) {
  address_.caller_options = "no options";
  const CallTarget target(address_);
  EXPECT_FALSE(target.is_out_of_order());
  EXPECT_EQ(target.limit(entry(target, MethodKey::of(&Known::f)), 1000ms), 1000ms);
}

}  // namespace
}  // namespace runtime
