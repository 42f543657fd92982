#include "runtime/call/state_hooks.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/control/membership.h"

namespace runtime {
namespace {

/// An actor whose state is a text.
struct Diary {
  Result<std::string> save_state() const {
    if (!failure.ok()) return failure;
    return text;
  }
  Status restore_state(std::string saved) {
    if (saved.empty()) return invalid_argument("an empty diary");
    text = std::move(saved);
    return {};
  }

  std::string text;
  Status failure;
};

/// One whose state refers to an object.
struct Pointer {
  ObjectRef<int> save_state() const {
    return ObjectRef<int>(ObjectState::failed(nullptr, not_found("x")));
  }
  void restore_state(const ObjectRef<int>&) {}
};

struct FakeStateKeeper final : StateKeeper {
  Status keep_state(ActorInstance actor, std::string state, Deadline) override {
    EXPECT_EQ(actor.incarnation, 3u);
    actors.push_back(actor.actor);
    states.push_back(std::move(state));
    return answer;
  }

  std::vector<ActorId> actors;
  std::vector<std::string> states;
  Status answer;
};

struct StateHooksTest : ::testing::Test {
  template <class T>
  Status save(const T& actor) {
    return save_state_of(&actor, state_hooks<T>(), self, keeper, Deadline::max());
  }

  const ActorInstance self{ActorId::random(), 3};
  FakeStateKeeper keeper;
};

TEST_F(StateHooksTest, WhatIsSavedIsRestored) {
  const Diary diary{"dear", {}};
  ASSERT_TRUE(save(diary).ok());
  EXPECT_EQ(keeper.actors, std::vector<ActorId>{self.actor});
  ASSERT_EQ(keeper.states.size(), 1u);
  Diary next;
  const Status restored = restore_state_of(&next, state_hooks<Diary>(), keeper.states[0], nullptr);
  EXPECT_TRUE(restored.ok()) << restored.to_string();
  EXPECT_EQ(next.text, "dear");
}

TEST_F(StateHooksTest, FailuresOfTheHooksAreSaid) {
  const Diary torn{"", task_failed("a page is torn")};
  EXPECT_EQ(save(torn), task_failed("save_state: a page is torn"));
  EXPECT_TRUE(keeper.states.empty());
  ASSERT_TRUE(save(Diary{}).ok());
  Diary next;
  EXPECT_EQ(restore_state_of(&next, state_hooks<Diary>(), keeper.states[0], nullptr),
            invalid_argument("restore_state: an empty diary"));
  EXPECT_EQ(restore_state_of(&next, state_hooks<Diary>(), "no state", nullptr).code(),
            ErrorCode::kInvalidArgument);
  keeper.answer = unavailable("no head");
  EXPECT_EQ(save(Diary{}), unavailable("save_state: no head"));
}

TEST_F(StateHooksTest, WhatTheHeadCannotKeepIsRefused) {
  EXPECT_EQ(save(Pointer()).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(save(Diary{std::string(kActorStateBytesMax + 1, 'x'), {}}).code(),
            ErrorCode::kResourceExhausted);
  EXPECT_TRUE(keeper.states.empty());
}

TEST_F(StateHooksTest, AClassWithoutHooksHasNoState) {
  struct Plain {};
  EXPECT_FALSE(state_hooks<Plain>());
  EXPECT_EQ(save(Plain()).code(), ErrorCode::kInvalidArgument);
  Plain plain;
  EXPECT_EQ(restore_state_of(&plain, state_hooks<Plain>(), "x", nullptr).code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(StateHooksTest, OutsideOfAnActorNothingIsSaved) {
  const Diary diary{"dear", {}};
  EXPECT_EQ(save_state_of(&diary, state_hooks<Diary>(), {}, keeper, Deadline::max()).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(keeper.states.empty());
}

TEST_F(StateHooksTest, AsAMethodItSavesTheActorThatRuns) {
  Diary diary{"dear", {}};
  const CallContext context({}, Deadline::max());
  const MethodKey key = save_state_key();
  Decoder no_arguments({});
  InvokeOutput output;
  Invocation call{&diary, key, no_arguments, context, output, nullptr, &keeper};
  const ActorScope scope(self);
  EXPECT_TRUE(invoke_save_state<Diary>(call).ok());
  EXPECT_EQ(keeper.actors, std::vector<ActorId>{self.actor});
}

}  // namespace
}  // namespace runtime
