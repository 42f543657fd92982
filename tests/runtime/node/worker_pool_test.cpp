#include "runtime/node/worker_pool.h"

#include <signal.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "runtime/process/worker_environment.h"
#include "tests/runtime/node/control_inbox.h"
#include "tests/runtime/node/script.h"
#include "tests/runtime/transport/channel_pair.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

// Its workers are processes of a script, which do nothing; their connections are the test's.
class WorkerPoolTest : public ::testing::Test {
 protected:
  using Started = std::shared_ptr<std::vector<Result<ControlAnswer>>>;

  WorkerPoolTest() {
    script_.write("exec sleep 60");
    options_.node = NodeId::random();
    options_.session_dir = script_.folder().string();
    options_.end_grace = 20s;  // a sleeping shell ends at once
    options_.shared_idle = 1ms;
    options_.starts.pause_first = 1ms;
  }
  ~WorkerPoolTest() override {
    run_on(loop_, [&] {
      pool_.reset();
      for (ChannelPair& connection : connections_) connection.close();
    });
    run_on(loop_, [] {});  // what that closed
  }
  void make() {
    WorkerPoolCallbacks callbacks;
    callbacks.on_actor_exited = [this](JobId job, control::ActorExited exited) {
      EXPECT_EQ(job, job_);
      exited_.push_back(std::move(exited));
    };
    callbacks.on_actors_exited = [this](JobId job, control::ActorsExited exited) {
      EXPECT_EQ(job, job_);
      shared_exited_.push_back(std::move(exited));
    };
    callbacks.on_log = [this](const LogLines& lines) {
      for (const std::string& line : lines.lines) said_.push_back(lines.class_name + ": " + line);
    };
    callbacks.find_program = [this](const DriverInfo&, const std::string&, Deadline,
                                    const ProgramFiles::Found& found) {
      found(LocalProgram{script_.program(), nullptr});
    };
    run_on(loop_,
           [&] { pool_ = std::make_unique<WorkerPool>(loop_, options_, std::move(callbacks)); });
  }
  static control::StartActor start_of(ActorId actor, std::uint64_t incarnation = 1) {
    control::StartActor start;
    start.spec.actor = actor;
    start.spec.class_name = "Counter";
    start.incarnation = incarnation;
    return start;
  }
  Started start(control::StartActor request, std::chrono::milliseconds time = 20s) {
    auto started = std::make_shared<std::vector<Result<ControlAnswer>>>();
    run_on(loop_, [&] {
      pool_->start_actor(job_, std::move(request), deadline_after(time),
                         [started](Result<ControlAnswer> said) { started->push_back(said); });
    });
    return started;
  }
  Started start(ActorId actor) { return start(start_of(actor)); }
  Result<ControlAnswer> answer(const Started& started) {
    EXPECT_TRUE(comes_true(loop_, [&] { return !started->empty(); }));
    return on_loop(loop_, [&]() -> Result<ControlAnswer> {
      EXPECT_EQ(started->size(), 1u);
      if (started->empty()) return internal_error("no answer");
      return started->front();
    });
  }
  bool is_open(const Started& started) {
    return on_loop(loop_, [&] { return started->empty(); });
  }
  void start_shared(ActorId actor) {
    auto request = start_of(actor);
    request.spec.shared = true;
    shared_.push_back(start(std::move(request)));
  }
  WorkerList list() {
    return on_loop(loop_, [&] {
      WorkerList list;
      pool_->list(list);
      return list;
    });
  }
  std::vector<std::string> states() {
    std::vector<std::string> states;
    for (const WorkerInfo& worker : list()) states.push_back(worker.state);
    std::sort(states.begin(), states.end());
    return states;
  }
  bool are_workers(std::size_t count) {
    return support::eventually([&] { return list().size() == count; }, 20s, 1ms);
  }
  /// The process of the worker, as it connects.
  std::optional<JobId> connect(const WorkerInfo& worker) {
    return on_loop(loop_, [&] {
      PeerInfo peer = peer_of(Role::kWorker);
      peer.worker = worker.worker;
      peer.pid = worker.pid;
      ChannelPair& connection = connections_.emplace_back(loop_, peer);
      process_.serve(connection.far);
      return pool_->on_connected(connection.near);
    });
  }
  template <class T>
  T next() {
    EXPECT_TRUE(comes_true(loop_, [&] { return process_.waiting() > 0; })) << "nothing is asked";
    return on_loop(loop_, [&] { return process_.next<T>(); });
  }
  void reply(Result<ControlAnswer> answer = ControlAnswer{}) {
    run_on(loop_, [&] { process_.answer(std::move(answer)); });
  }
  /// In the one worker that there is then.
  void start_serving(control::StartActor request) {
    const Started started = start(std::move(request));
    ASSERT_TRUE(are_workers(1));
    EXPECT_EQ(connect(list()[0]), job_);
    next<control::BuildActor>();
    reply();
    ASSERT_TRUE(answer(started).ok()) << answer(started).status().to_string();
  }
  void start_serving(ActorId actor) { start_serving(start_of(actor)); }
  control::ActorExited exited() {
    EXPECT_TRUE(comes_true(loop_, [&] { return !exited_.empty(); }));
    return on_loop(loop_, [&] {
      EXPECT_EQ(exited_.size(), 1u);
      return exited_.empty() ? control::ActorExited() : exited_.front();
    });
  }
  void stop(ActorId actor, bool drain = false, std::chrono::milliseconds grace = 0ms) {
    control::StopActor stop;
    stop.actor = actor;
    stop.incarnation = 1;
    stop.drain = drain;
    stop.grace = grace;
    run_on(loop_, [&] { pool_->stop_actor(stop); });
  }
  WorkerPoolStats stats() {
    return on_loop(loop_, [&] { return pool_->stats(); });
  }

  Script script_;
  EventLoop loop_;
  WorkerPoolOptions options_;
  const JobId job_ = JobId::random();
  const ActorId a_ = ActorId::random(), b_ = ActorId::random();
  std::vector<control::ActorExited> exited_;
  std::vector<control::ActorsExited> shared_exited_;
  std::vector<std::string> said_;
  std::deque<ChannelPair> connections_;
  ControlInbox process_;  // what the processes are asked
  std::vector<Started> shared_;
  std::unique_ptr<WorkerPool> pool_;
};

TEST_F(WorkerPoolTest, StartsAProcessThatBuildsTheActor) {
  make();
  const Started started = start(a_);
  EXPECT_EQ(states(), std::vector<std::string>{"starting"});
  const WorkerInfo worker = list()[0];
  EXPECT_EQ(worker.actor, a_);
  EXPECT_EQ(connect(worker), job_);
  const auto build = next<control::BuildActor>();
  EXPECT_EQ(build.spec.actor, a_);
  EXPECT_EQ(build.incarnation, 1u);
  run_on(loop_, [&] {
    EXPECT_EQ(pool_->starting(), 1u);
    EXPECT_TRUE(pool_->serving().empty());
  });
  reply();
  const auto said = answer(started);
  ASSERT_TRUE(said.ok()) << said.status().to_string();
  const auto& address = std::get<ActorAddress>(*said);
  EXPECT_EQ(address.actor, a_);
  EXPECT_EQ(address.worker, worker.worker);
  EXPECT_EQ(address.pid, worker.pid);
  EXPECT_EQ(states(), std::vector<std::string>{"actor"});
  run_on(loop_, [&] {
    EXPECT_EQ(pool_->starting(), 0u);
    EXPECT_EQ(pool_->serving(), (std::vector<control::ActorInstance>{{a_, 1}}));
    std::string name;
    EXPECT_EQ(pool_->process_of(a_, &name), worker.pid);
    EXPECT_EQ(name, "Counter");
    EXPECT_EQ(pool_->process_of(b_, &name), 0);
    EXPECT_EQ(pool_->guarded().size(), 1u);
  });
  EXPECT_EQ(stats().starts, 1u);
  EXPECT_GT(stats().connected_sum_ns, 0u);
}

TEST_F(WorkerPoolTest, OnlyAProcessOfItsOwnIsAWorker) {
  make();
  start(a_);
  WorkerInfo worker = list()[0];
  ++worker.pid;
  EXPECT_EQ(connect(worker), std::nullopt) << "another process";
  --worker.pid;
  WorkerInfo unknown = worker;
  unknown.worker = WorkerId::random();
  EXPECT_EQ(connect(unknown), std::nullopt);
  EXPECT_EQ(connect(worker), job_);
  EXPECT_EQ(connect(worker), std::nullopt) << "it is here already";
}

TEST_F(WorkerPoolTest, AConstructorThatFailsEndsItsProcess) {
  make();
  const Started started = start(a_);
  connect(list()[0]);
  next<control::BuildActor>();
  reply(Status(ErrorCode::kTaskFailed, "it threw"));
  EXPECT_EQ(answer(started).status(), Status(ErrorCode::kTaskFailed, "it threw"));
  EXPECT_TRUE(are_workers(0));
  EXPECT_EQ(stats().ended, 1u);
  run_on(loop_, [&] { EXPECT_TRUE(exited_.empty()) << "it has never served"; });
}

TEST_F(WorkerPoolTest, AProcessThatDiesFirstIsSaidWithItsLastWords) {
  script_.write("echo a library is missing >&2; exit 4");
  make();
  const Status status = answer(start(a_)).status();
  EXPECT_EQ(status.code(), ErrorCode::kActorDied);
  EXPECT_NE(status.message().find("died while it was built: "), std::string::npos)
      << status.message();
  EXPECT_TRUE(status.message().ends_with("\na library is missing")) << status.message();
  EXPECT_EQ(stats().failed, 1u);
}

TEST_F(WorkerPoolTest, ReportsAnActorsCrash) {
  make();
  start_serving(a_);
  ASSERT_EQ(::kill(list()[0].pid, SIGKILL), 0);
  const auto end = exited();
  EXPECT_EQ(end.actor, a_);
  EXPECT_EQ(end.incarnation, 1u);
  EXPECT_EQ(end.cause.signal, SIGKILL);
  EXPECT_TRUE(are_workers(0));
  EXPECT_EQ(stats().crashed, 1u);
}

TEST_F(WorkerPoolTest, AStartEndsAtItsDeadline) {
  make();
  EXPECT_EQ(answer(start(start_of(a_), 20ms)).status(),
            deadline_exceeded(
                "actor Counter was not ready at the deadline: its process has not connected"));
  EXPECT_TRUE(are_workers(0));
  const Started slow = start(start_of(b_), 100ms);
  connect(list()[0]);
  EXPECT_EQ(answer(slow).status(),
            deadline_exceeded(
                "actor Counter was not ready at the deadline: its constructor has not returned"));
  EXPECT_TRUE(are_workers(0));
  run_on(loop_, [&] { EXPECT_TRUE(exited_.empty()); });
}

TEST_F(WorkerPoolTest, AProcessForWhichTheMachineHadNoRoomIsStartedAgain) {
  script_.write("[ -e $HERE/tried ] && exec sleep 60\ntouch $HERE/tried\nexit " +
                std::to_string(kNoRoomExitCode));
  make();
  const Started started = start(a_);
  EXPECT_TRUE(comes_true(loop_, [&] { return pool_->stats().starts == 2; }));
  EXPECT_TRUE(is_open(started));
  connect(list()[0]);
  EXPECT_EQ(next<control::BuildActor>().spec.actor, a_);
  reply();
  EXPECT_TRUE(answer(started).ok());
}

TEST_F(WorkerPoolTest, AProcessThatFindsNoRoomAndSaysNothingIsGivenUpWithAReason) {
  script_.write("exit " + std::to_string(kNoRoomExitCode));
  options_.starts.patience = 1ms;
  make();
  const Status status = answer(start(a_)).status();
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(status.message().starts_with(
      "starting a worker: its process found no room, and said nothing more"))
      << status.message();
}

TEST_F(WorkerPoolTest, HasALimitOfWorkers) {
  options_.workers_max = 1;
  options_.starts.patience = 1ms;
  make();
  const Started first = start(a_);
  const Status status = answer(start(b_)).status();
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(status.message().find("runs 1 workers already"), std::string::npos) << status.message();
  EXPECT_TRUE(is_open(first));
}

TEST_F(WorkerPoolTest, AskedAgainItStartsOnce) {
  make();
  const Started first = start(a_);
  const Started second = start(a_);
  EXPECT_EQ(list().size(), 1u);
  connect(list()[0]);
  next<control::BuildActor>();
  reply();
  EXPECT_TRUE(answer(second).ok());
  EXPECT_TRUE(is_open(first)) << "of a head that is gone";
  EXPECT_TRUE(answer(start(a_)).ok()) << "it serves already";
  EXPECT_EQ(stats().starts, 1u);
}

TEST_F(WorkerPoolTest, WarmWorkersWaitForActorsThatTheySuit) {
  make();
  DriverInfo driver;
  driver.warm_workers = 2;
  run_on(loop_, [&] { pool_->warm(job_, driver); });
  EXPECT_EQ(states(), (std::vector<std::string>{"idle", "idle"}));
  run_on(loop_, [&] { EXPECT_TRUE(pool_->guarded().empty()); });
  EXPECT_EQ(connect(list()[1]), job_);
  start(a_);
  EXPECT_EQ(next<control::BuildActor>().spec.actor, a_) << "in the one that has connected";
  EXPECT_EQ(states(), (std::vector<std::string>{"idle", "starting"}));
  auto wants_own = start_of(b_);
  wants_own.spec.env = {{"NAME", "value"}};
  start(std::move(wants_own));
  EXPECT_EQ(states(), (std::vector<std::string>{"idle", "starting", "starting"}));
  run_on(loop_, [&] { pool_->begin_drain(); });
  EXPECT_TRUE(are_workers(2)) << "the idle one goes";
  run_on(loop_, [&] { pool_->warm(job_, driver); });
  EXPECT_EQ(list().size(), 2u);
}

TEST_F(WorkerPoolTest, SharedActorsOfAJobAreInOneProcess) {
  make();
  start_shared(a_);
  start_shared(b_);
  ASSERT_EQ(states(), std::vector<std::string>{"shared"});
  EXPECT_EQ(list()[0].actors, 2u);
  connect(list()[0]);
  for (int i = 0; i < 2; ++i) {
    next<control::BuildActor>();
    reply();
  }
  for (const Started& started : shared_) EXPECT_TRUE(answer(started).ok());
  run_on(loop_, [&] {
    EXPECT_EQ(pool_->serving().size(), 2u);
    EXPECT_EQ(pool_->guarded().size(), 1u);
  });
  stop(a_);
  EXPECT_EQ(next<control::StopActor>().actor, a_);
  reply();
  EXPECT_EQ(states(), std::vector<std::string>{"shared"});
  stop(b_);
  EXPECT_TRUE(are_workers(0)) << "it ends with the last of them";
  run_on(loop_, [&] { EXPECT_EQ(shared_exited_.size(), 2u); });
  EXPECT_EQ(stats().ended, 1u);
}

TEST_F(WorkerPoolTest, SharedActorsEndWithTheirProcess) {
  make();
  start_shared(a_);
  connect(list()[0]);
  next<control::BuildActor>();
  reply();
  EXPECT_TRUE(answer(shared_[0]).ok());
  ASSERT_EQ(::kill(list()[0].pid, SIGKILL), 0);
  EXPECT_TRUE(comes_true(loop_, [&] { return !shared_exited_.empty(); }));
  run_on(loop_, [&] {
    EXPECT_EQ(shared_exited_[0].actors, (std::vector<control::ActorInstance>{{a_, 1}}));
    EXPECT_EQ(shared_exited_[0].cause.signal, SIGKILL);
  });
  start_shared(b_);
  EXPECT_EQ(list().size(), 1u) << "in another one";
}

TEST_F(WorkerPoolTest, StopsAnActor) {
  make();
  start_serving(a_);
  stop(b_);
  EXPECT_EQ(states(), std::vector<std::string>{"actor"});
  stop(a_);
  const DeathCause cause = exited().cause;
  EXPECT_TRUE(cause.text.starts_with("killed on request (")) << cause.text;
  EXPECT_EQ(stats().ended, 1u);
}

TEST_F(WorkerPoolTest, ADrainedActorEndsByItself) {
  make();
  start_serving(a_);
  stop(a_, true, 20s);
  EXPECT_EQ(next<control::DrainActor>().actor, a_);
  EXPECT_EQ(states(), std::vector<std::string>{"ending"});
  ASSERT_EQ(::kill(list()[0].pid, SIGTERM), 0);  // the script's way
  const DeathCause cause = exited().cause;
  EXPECT_TRUE(cause.text.starts_with("killed on request (")) << cause.text;
}

TEST_F(WorkerPoolTest, ADrainThatTakesTooLongIsCutShort) {
  make();
  start_serving(a_);
  stop(a_, true, 20s);
  stop(a_, true, 30s);
  stop(a_, true, 10ms);
  const DeathCause cause = exited().cause;
  EXPECT_TRUE(cause.text.starts_with(
      "killed on request; it had not served its calls in time and was killed"))
      << cause.text;
  EXPECT_EQ(cause.signal, SIGKILL);
  run_on(loop_, [&] { EXPECT_EQ(process_.waiting(), 1u) << "it is asked once"; });
}

TEST_F(WorkerPoolTest, AStartIsCancelled) {
  make();
  const Started started = start(a_);
  stop(a_);
  EXPECT_EQ(answer(started).status().code(), ErrorCode::kActorDied);
  EXPECT_TRUE(are_workers(0));
}

TEST_F(WorkerPoolTest, AJobsWorkersEndWithIt) {
  make();
  auto stays = start_of(a_);
  stays.spec.outlives_job = true;
  start(std::move(stays));
  const Started goes = start(b_);
  run_on(loop_, [&] { pool_->end_job(JobId::random()); });
  EXPECT_EQ(list().size(), 2u);
  run_on(loop_, [&] { pool_->end_job(job_); });
  EXPECT_FALSE(answer(goes).ok());
  EXPECT_TRUE(are_workers(1));
  EXPECT_EQ(list()[0].actor, a_);
}

TEST_F(WorkerPoolTest, AProcessWithoutItsConnectionIsEnded) {
  make();
  start_serving(a_);
  const WorkerId worker = list()[0].worker;
  run_on(loop_, [&] {
    pool_->on_disconnected(WorkerId::random(), cancelled("another"));
    pool_->on_disconnected(worker, cancelled("it was cut"));
  });
  const DeathCause cause = exited().cause;
  EXPECT_TRUE(cause.text.ends_with("lost the connection to it: it was cut")) << cause.text;
}

TEST_F(WorkerPoolTest, EndsAWorkerThatTakesTooMuch) {
  make();
  start_serving(a_);
  const WorkerId worker = list()[0].worker;
  run_on(loop_, [&] {
    pool_->stop_worker(WorkerId::random(), "another");
    pool_->stop_worker(worker, "the machine runs short of memory");
  });
  const DeathCause cause = exited().cause;
  EXPECT_TRUE(cause.text.starts_with("the machine runs short of memory (")) << cause.text;
}

TEST_F(WorkerPoolTest, HandsOnConnections) {
  make();
  Inbound inbound;
  inbound.preamble.target = WorkerId::random();
  const auto attach = [&] {
    return on_loop(loop_, [&] {
      int ends[2] = {-1, -1};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      FileDescriptor socket(ends[0]), other(ends[1]);
      return pool_->attach(inbound, socket);
    });
  };
  EXPECT_EQ(attach().code(), ErrorCode::kNotFound);
  start(a_);
  inbound.preamble.target = list()[0].worker;
  EXPECT_EQ(attach().code(), ErrorCode::kNotFound) << "it has not connected";
  connect(list()[0]);
  next<control::BuildActor>();
  std::size_t attached = 0;
  run_on(loop_, [&] {
    connections_[0].far->set_handler([&](const std::shared_ptr<Channel>&, const Message& message) {
      attached += message.kind == FrameKind::kAttach && message.fds.size() == 1;
    });
  });
  EXPECT_TRUE(attach().ok());
  EXPECT_TRUE(comes_true(loop_, [&] { return attached == 1; }));
}

TEST_F(WorkerPoolTest, PassesOnThatAConstructorIsAwaited) {
  make();
  start(a_);
  connect(list()[0]);
  next<control::BuildActor>();
  run_on(loop_, [&] {
    process_.ignore();
    for (ActorId actor : {b_, a_}) {
      control::ConstructorAwaited awaited;
      awaited.actor = actor;
      pool_->pass_on(ControlRequest{job_, 1s, awaited});
    }
  });
  EXPECT_EQ(next<control::ConstructorAwaited>().actor, a_);
}

TEST_F(WorkerPoolTest, AnActorSeesItsGpusAndSaysItsLines) {
  options_.gpu_names = {"GPU-a", "GPU-b"};
  script_.write("echo sees $CUDA_VISIBLE_DEVICES; exec sleep 60");
  make();
  auto request = start_of(a_);
  request.gpus = {1};
  request.spec.env = {{"CUDA_VISIBLE_DEVICES", "GPU-a"}};
  start(std::move(request));
  EXPECT_TRUE(comes_true(loop_, [&] { return !said_.empty(); }));
  run_on(loop_, [&] { EXPECT_EQ(said_, std::vector<std::string>{"Counter: sees GPU-b"}); });
}

TEST_F(WorkerPoolTest, EndsAllWorkersAndStartsNoMore) {
  options_.starts.patience = 1ms;
  make();
  auto moves = start_of(a_);
  moves.spec.max_restarts = 1;
  start_serving(std::move(moves));
  start(b_);
  bool ended = false;
  run_on(loop_, [&] { pool_->end_all("its node was stopped", [&] { ended = true; }); });
  EXPECT_EQ(next<control::DrainActor>().actor, a_) << "it saves its state";
  EXPECT_TRUE(are_workers(1));
  run_on(loop_, [&] { EXPECT_FALSE(ended); });
  ASSERT_EQ(::kill(list()[0].pid, SIGTERM), 0);
  EXPECT_TRUE(comes_true(loop_, [&] { return ended; }));
  EXPECT_FALSE(answer(start(ActorId::random())).ok());
  EXPECT_EQ(list().size(), 0u);
  ended = false;
  run_on(loop_, [&] { pool_->end_all("again", [&] { ended = true; }); });
  EXPECT_TRUE(ended) << "there is none to wait for";
}

}  // namespace
}  // namespace runtime
