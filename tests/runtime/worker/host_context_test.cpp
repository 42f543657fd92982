// HostContext as actors use it: states between two lives, notices of drains, and the end of an
// actor's share of its node.
#include "runtime/worker/host_context.h"

#include "host_fixture.h"

namespace runtime {
namespace {

/// Keeps a number from life to life.
class Diarist {
 public:
  explicit Diarist(test::Stage& stage) : stage_(stage) {}
  int write(int number) {
    stage_.enter(number);
    return last_ = number;
  }
  int save_state() const {
    if (last_ < 0) throw std::runtime_error("the diary is lost");
    return last_;
  }
  void restore_state(int last) { last_ = last; }
  void on_drain(const DrainNotice& notice) {
    stage_.enter(notice.reason == "preemption" ? 1000 : -1);
  }
  int last(int) { return last_; }

 private:
  test::Stage& stage_;
  int last_ = 0;
};

/// Waits for an object.
struct Waiter {
  explicit Waiter(ObjectStatePtr awaited) : object(std::move(awaited)) {}
  int wait(int) { return object->wait(deadline_after(std::chrono::seconds(30))) ? 1 : 0; }

  const ObjectStatePtr object;
};

class HostContextTest : public test::WorkerPartTest {
 protected:
  HostContextTest() {
    ActorClass& diarist = registry_.add("Diarist", typeid(Diarist));
    diarist.add(runtime_detail::method_entry<Diarist>(method("write", &Diarist::write)));
    diarist.add(runtime_detail::method_entry<Diarist>(method("last", &Diarist::last)));
    diarist.set_drain_hook(drain_hook<Diarist>());
    diarist.set_state_hooks(state_hooks<Diarist>());
    ActorClass& waiter = registry_.add(TaskRunner::kClassName, typeid(Waiter));
    waiter.add(runtime_detail::method_entry<Waiter>(method("wait", &Waiter::wait)));
    class_ = &diarist;
    waiter_ = &waiter;
  }
  Result<std::shared_ptr<void>> make_actor(std::type_index type) override {
    if (type == typeid(Diarist)) return std::shared_ptr<void>(std::make_shared<Diarist>(stage_));
    EXPECT_EQ(type, std::type_index(typeid(Waiter)));
    return std::shared_ptr<void>(std::make_shared<Waiter>(object_));
  }
  Status build(ActorSpec spec) {
    host_ = std::make_shared<ActorHost>(context(), actor_, 3, false);
    on_loop([this] { serve(); });
    std::promise<Status> built;
    host_->build(std::move(spec), [&](Status status) { built.set_value(std::move(status)); });
    return built.get_future().get();
  }
  /// What comes from the caller goes to the actor.
  void serve() {
    caller_->far->set_handler([this](const std::shared_ptr<Channel>& from, Message message) {
      auto job = std::make_unique<ActorJob>();
      const Status decoded = decode_call(
          message.meta, message.payload.first(), objects_.get(),
          [](const CallRequest&) { return nullptr; }, &job->call, &job->arguments);
      EXPECT_TRUE(decoded.ok());
      job->channel = from;
      job->request.kind = message.kind;
      job->request.id = message.id;
      job->deadline = deadline_after(std::chrono::seconds(60));
      host_->push(std::move(job));
    });
  }
  /// A diarist that may be started again.
  ActorSpec diarist() const {
    ActorSpec spec = test::spec_of(actor_, "Diarist");
    spec.max_restarts = 1;
    return spec;
  }
  int call_diarist(int (Diarist::*method)(int), int number) {
    return answer(call(*caller_, {.actor = actor_}, method, number)).value;
  }
  void stop_after_calls() {
    std::promise<void> ended;
    host_->stop_after_calls([&] { ended.set_value(); });
    ended.get_future().wait();
  }

  const ActorClass* waiter_ = nullptr;
  ObjectStatePtr object_ = std::make_shared<ObjectState>(objects_.get());
  std::shared_ptr<ActorHost> host_;
};

TEST_F(HostContextTest, AnActorThatStopsAfterItsCallsSavesItsStateForItsNextLife) {
  ASSERT_TRUE(build(diarist()).ok());
  EXPECT_EQ(call_diarist(&Diarist::write, 7), 7);
  stop_after_calls();
  const auto saved = host_process_.saved();
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(saved[0].first.actor, actor_);
  EXPECT_EQ(saved[0].first.incarnation, 3u);
  ActorSpec next = diarist();
  next.saved_state = saved[0].second;
  ASSERT_TRUE(build(std::move(next)).ok());
  EXPECT_EQ(call_diarist(&Diarist::last, 0), 7);
}

TEST_F(HostContextTest, OneThatIsNotStartedAgainSavesNothing) {
  ActorSpec spec = diarist();
  spec.max_restarts = 0;
  ASSERT_TRUE(build(std::move(spec)).ok());
  stop_after_calls();
  EXPECT_TRUE(host_process_.saved().empty());
}

TEST_F(HostContextTest, AStateThatCannotBeSavedDoesNotKeepItsActor) {
  ASSERT_TRUE(build(diarist()).ok());
  EXPECT_EQ(call_diarist(&Diarist::write, -1), -1);
  stop_after_calls();
  EXPECT_TRUE(host_process_.saved().empty());
}

TEST_F(HostContextTest, ADrainedNodesNoticeReachesItsActors) {
  host_process_.drain({"preemption", deadline_after(std::chrono::seconds(60))});
  ASSERT_TRUE(build(diarist()).ok());
  host_->tell_of_drain();
  EXPECT_EQ(call_diarist(&Diarist::write, 7), 7);
  EXPECT_EQ(stage_.entered(), (std::vector<int>{1000, 7}));
}

TEST_F(HostContextTest, ATaskThatWaitsGivesItsShareOfTheNodeBack) {
  std::atomic<int> parked = 0;
  host_process_.on_park = [&](ActorId actor) {
    EXPECT_EQ(actor, actor_);
    ++parked;
    object_->fulfil({});
  };
  ASSERT_TRUE(build(test::spec_of(actor_, TaskRunner::kClassName)).ok());
  class_ = waiter_;
  EXPECT_EQ(answer(call(*caller_, {.actor = actor_}, &Waiter::wait, 0)).value, 1);
  EXPECT_EQ(parked, 1);
}

TEST_F(HostContextTest, AnActorOfAnUnknownClassIsRefused) {
  EXPECT_EQ(build(test::spec_of(actor_, "Stranger")).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace runtime
