#include "runtime/call/blocked_calls.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/call/awaited_call.h"

namespace runtime {
namespace {

constexpr std::uint64_t kSession = 7;

/// A call that is awaited, and remembers what it was told.
struct FakeCall final : AwaitedCall {
  explicit FakeCall(std::string its_name) : name(std::move(its_name)) {}
  std::string describe() const override { return name; }
  bool has_own_limit() const override { return false; }
  void tell(const std::vector<WaitStep>& waits) const override { told.push_back(waits); }
  void on_cycle(const std::shared_ptr<Producer>&, const std::string& text,
                bool is_to_fail) override {
    cycle = text;
    fails = is_to_fail;
  }
  Status cancel(const std::shared_ptr<Producer>&, CancelMode) override { return {}; }

  const std::string name;
  mutable std::vector<std::vector<WaitStep>> told;
  std::string cycle;
  bool fails = false;
};

class BlockedCallsTest : public ::testing::Test {
 protected:
  ServedCall served_constructor() const {
    return {{actor_, nullptr, 0}, &class_name_, &kConstructor};
  }
  ServedCall served_method() const { return {{actor_, nullptr, 3}, &class_name_, &method_}; }
  /// Whether the call fails that `first` waits for, in a cycle of that wait with `second`.
  bool fails_in_cycle(const ServedCall& first, const std::string& awaited, const WaitStep& second) {
    const auto call = std::make_shared<FakeCall>(awaited);
    const RegisteredWait waits = table_.enter(first, {call}, false);
    waits.announce();
    std::vector<WaitStep> steps = call->told.back();
    steps.push_back(second);
    table_.on_waits(first.key, steps);
    EXPECT_NE(call->cycle, "");
    return call->fails;
  }

  const ActorId actor_ = ActorId::random();
  const std::string class_name_ = "Relay", method_ = "forward";
  BlockedCalls table_{kSession};
};

// A coroutine awaits one call; meanwhile something else that it started blocks the actor for
// another.
TEST_F(BlockedCallsTest, AWaitOfACallDoesNotTakeThePlaceOfAnotherOfIt) {
  const ServedCall served = served_method();
  const auto awaited = std::make_shared<FakeCall>("Link 1: pass");
  const auto blocking = std::make_shared<FakeCall>("Link 2: pass");
  const RegisteredWait waits = table_.enter(served, {awaited}, false);
  const auto found = [&](std::uint64_t number, const std::string& call) {
    table_.on_waits(served.key, {{kSession, number, served.describe(), call, false},
                                 {kSession + 1, 1, call, served.describe(), false}});
  };
  {
    const RegisteredWait blocks = table_.enter(served, {blocking}, false);
    found(2, blocking->name);
    EXPECT_NE(blocks.cycle(), "");
    EXPECT_NE(blocking->cycle, "");
    EXPECT_EQ(waits.cycle(), "");
  }
  found(1, awaited->name);
  EXPECT_NE(waits.cycle(), "");
  EXPECT_NE(awaited->cycle.find("Relay"), std::string::npos) << awaited->cycle;
}

TEST_F(BlockedCallsTest, AChainThatComesToAConstructorGoesOnToWhatThatWaitsFor) {
  const ServedCall constructor = served_constructor();
  const auto awaited = std::make_shared<FakeCall>("Parent \"p\": (constructor)");
  const RegisteredWait waits = table_.enter(constructor, {awaited}, false);
  const std::vector<WaitStep> chain{
      {kSession + 1, 4, awaited->name, constructor.describe(), false}};
  table_.on_waits(constructor.key, chain);
  ASSERT_EQ(awaited->told.size(), 1u);
  const std::vector<WaitStep>& told = awaited->told.back();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told.front(), chain.front());
  EXPECT_EQ(told.back(), (WaitStep{kSession, 1, constructor.describe(), awaited->name, false}));
  table_.on_waits({ActorId::random(), nullptr, 0}, chain);
  table_.on_waits(served_method().key, chain);
  EXPECT_EQ(awaited->told.size(), 1u);
}

TEST_F(BlockedCallsTest, ALongChainGoesNoFurther) {
  const ServedCall constructor = served_constructor();
  const auto awaited = std::make_shared<FakeCall>("Link 1: pass");
  const RegisteredWait waits = table_.enter(constructor, {awaited}, false);
  std::vector<WaitStep> chain;
  for (std::uint64_t i = 1; i < WaitStep::kStepsMax; ++i)
    chain.push_back({kSession + i, i, "A: f", "B: g", false});
  table_.on_waits(constructor.key, chain);
  EXPECT_EQ(awaited->told.size(), 1u);
  chain.push_back({kSession + 100, 1, "A: f", "B: g", false});
  table_.on_waits(constructor.key, chain);
  EXPECT_EQ(awaited->told.size(), 1u);
}

TEST_F(BlockedCallsTest, AMethodsWaitForAConstructorFailsBeforeOthers) {
  const std::string other = "Link 1: (constructor)";
  const std::string call = "Link 1: pass";
  const ServedCall method = served_method(), constructor = served_constructor();
  // The other wait of each cycle is of a greater session.
  const auto second = [](const std::string& waiting, const std::string& awaited) {
    return WaitStep{kSession + 1, 1, waiting, awaited, false};
  };
  EXPECT_TRUE(fails_in_cycle(method, other, second(other, method.describe())));
  EXPECT_TRUE(fails_in_cycle(method, call, second(other, method.describe())));
  EXPECT_TRUE(fails_in_cycle(constructor, other, second(other, method.describe())));
  EXPECT_FALSE(fails_in_cycle(constructor, other, second(other, constructor.describe())));
  EXPECT_FALSE(fails_in_cycle(constructor, call, second(call, constructor.describe())));
  EXPECT_FALSE(fails_in_cycle(method, call, second(call, method.describe())));
}

TEST_F(BlockedCallsTest, AWaitThatIsOverIsNoPartOfAnyChain) {
  const ServedCall served = served_method();
  const auto awaited = std::make_shared<FakeCall>("Link 1: pass");
  const std::vector<WaitStep> chain{{kSession + 1, 4, "A: f", served.describe(), false}};
  {
    RegisteredWait first = table_.enter(served, {awaited}, false);
    const RegisteredWait moved = std::move(first);
    table_.on_waits(served.key, chain);
    EXPECT_EQ(awaited->told.size(), 1u) << "it is one wait, wherever it is kept";
  }
  table_.on_waits(served.key, chain);
  EXPECT_EQ(awaited->told.size(), 1u);
}

TEST_F(BlockedCallsTest, AWaitMayOutliveTheSearch) {
  auto search = std::make_unique<BlockedCalls>(kSession);
  const auto awaited = std::make_shared<FakeCall>("Link 1: pass");
  std::optional<RegisteredWait> waits = search->enter(served_method(), {awaited}, true);
  search.reset();
  waits->announce();
  ASSERT_EQ(awaited->told.size(), 1u);
  EXPECT_TRUE(awaited->told[0].back().bounded);
  EXPECT_EQ(waits->cycle(), "");
  waits.reset();
}

TEST(DescribeCycle, NamesTheCallsAndTheCure) {
  const std::string text =
      describe_cycle({{1, 1, "A 12: f", "B 34: g", false}, {2, 1, "B 34: h", "A 12: k", false}});
  EXPECT_NE(text.find("A 12: f waits for B 34: g; B 34: h waits for A 12: k."), std::string::npos)
      << text;
  EXPECT_NE(text.find("max_concurrency"), std::string::npos) << text;
}

}  // namespace
}  // namespace runtime
