#include "runtime/node/node_introspection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "runtime/observe/metrics_key.h"
#include "tests/runtime/node/head_socket.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

constexpr std::int32_t kNoProcess = (1 << 22) + 1;  // no process has a larger number

class FakeWorkers final : public WorkerView {
 public:
  void list(WorkerList& to) const override { to = workers; }
  pid_t process_of(ActorId actor, std::string* class_name) const override {
    for (const WorkerInfo& worker : workers) {
      if (worker.actor != actor) continue;
      *class_name = worker.class_name;
      return worker.pid;
    }
    return 0;
  }
  std::vector<control::ActorInstance> serving() const override { return served; }
  std::size_t starting() const override { return 3; }
  std::string start_trouble(ActorId actor) const override {
    return actor == lacking ? "no room for another process" : "";
  }
  const WorkerPoolStats& stats() const override { return counted; }

  /// One that is this process.
  WorkerInfo& add(const std::string& state) {
    WorkerInfo worker;
    worker.state = state;
    worker.pid = ::getpid();
    workers.push_back(worker);
    return workers.back();
  }

  WorkerList workers;
  std::vector<control::ActorInstance> served;
  ActorId lacking = ActorId::random();
  WorkerPoolStats counted;
};

class FakeMetricsServer final : public MetricsServer {
 public:
  explicit FakeMetricsServer(std::vector<std::string>& begun) : begun_(begun) {}
  void serve(FileDescriptor, std::string begun) override { begun_.push_back(std::move(begun)); }

 private:
  std::vector<std::string>& begun_;
};

class NodeIntrospectionTest : public ::testing::Test {
 protected:
  using Answer = std::shared_ptr<std::optional<Result<ControlAnswer>>>;

  NodeIntrospectionTest() {
    options_.node = NodeId::random();
    options_.credentials = HeadSocket::credentials();
    store_.capacity_bytes = 1000;
    store_.spills = 4;
  }
  ~NodeIntrospectionTest() override {
    run_on(loop_, [&] {
      node_.reset();
      process_.close();
    });
    run_on(loop_, [] {});  // what that closed
  }
  void make() {
    NodeIntrospectionSources sources;
    sources.objects = [this] { return store_; };
    sources.head = [this](ControlRequest request, ControlAnswerer answer) {
      asked_head_ = std::move(request);
      head_ = std::move(answer);
    };
    sources.numbers = [](Numbers& numbers) { numbers["head_up"] = 1; };
    run_on(loop_, [&] {
      node_ = std::make_unique<NodeIntrospection>(loop_, options_, workers_, std::move(sources));
    });
  }
  /// With a format and a server.
  void provide_metrics() {
    options_.metrics.text = [this](const MetricsReport& report) {
      report_ = report;
      return std::string("text");
    };
    options_.metrics.server = [this](EventLoop&, MetricsServerOptions options, auto read) {
      server_options_ = std::move(options);
      read_ = std::move(read);
      return std::make_unique<FakeMetricsServer>(begun_);
    };
  }
  Answer ask(ObserveControl request, std::chrono::milliseconds timeout = 20s) {
    auto answer = std::make_shared<std::optional<Result<ControlAnswer>>>();
    run_on(loop_, [&] {
      node_->serve(request, timeout, [answer](Result<ControlAnswer> said) {
        EXPECT_FALSE(answer->has_value()) << "answered twice";
        *answer = std::move(said);
      });
    });
    return answer;
  }
  template <class T>
  T seen(const Answer& answer) {
    EXPECT_TRUE(comes_true(loop_, [&] { return answer->has_value(); }));
    return on_loop(loop_, [&] {
      auto* control = *answer && (*answer)->ok() ? std::get_if<ObserveAnswer>(&***answer) : nullptr;
      auto* value = control ? std::get_if<T>(control) : nullptr;
      if (!value) ADD_FAILURE() << (*answer ? (*answer)->status().to_string() : "no answer");
      return value ? *value : T();
    });
  }
  Status status(const Answer& answer) {
    EXPECT_TRUE(comes_true(loop_, [&] { return answer->has_value(); }));
    return on_loop(loop_,
                   [&] { return *answer ? (*answer)->status() : internal_error("no answer"); });
  }
  /// The worker's process shows a page.
  void adopt(const std::shared_ptr<ActivityPage>& page) {
    auto fd = page->duplicate();
    ASSERT_TRUE(fd.ok()) << fd.status().to_string();
    Message message;
    message.kind = FrameKind::kActivity;
    message.fds.push_back(*std::move(fd));
    run_on(loop_, [&] { node_->on_activity(*process_.near, message); });
  }
  static PeerInfo worker_peer() {
    PeerInfo peer = peer_of(Role::kWorker);
    peer.pid = ::getpid();
    return peer;
  }

  EventLoop loop_;
  NodeIntrospectionOptions options_;
  FakeWorkers workers_;
  ObjectStoreStats store_;
  std::optional<ControlRequest> asked_head_;
  ControlAnswerer head_;
  MetricsReport report_;
  MetricsServerOptions server_options_;
  std::function<void(std::function<void(Result<std::string>)>)> read_;
  std::vector<std::string> begun_;
  ChannelPair process_{loop_, worker_peer()};
  std::unique_ptr<NodeIntrospection> node_;
};

TEST_F(NodeIntrospectionTest, CountsWhatTheNodeHas) {
  workers_.add("idle");
  workers_.add("actor");
  workers_.add("actor");
  workers_.served.resize(2);
  workers_.counted.starts = 7;
  workers_.counted.crashed = 2;
  make();
  run_on(loop_, [&] {
    node_->on_refused();
    node_->on_refused();
  });
  const NodeLoad load = seen<NodeLoad>(ask(control::ReadLoad{}));
  EXPECT_EQ(load.node, options_.node);
  EXPECT_GT(load.at_ns, 0u);
  Numbers numbers = load.numbers;
  EXPECT_EQ(numbers["workers_idle"], 1);
  EXPECT_EQ(numbers["workers_actor"], 2);
  EXPECT_EQ(numbers.count("workers_shared"), 1u) << "none, but it is said";
  EXPECT_EQ(numbers["worker_starts"], 7);
  EXPECT_EQ(numbers["worker_ends_crashed"], 2);
  EXPECT_EQ(numbers["actors_serving"], 2);
  EXPECT_EQ(numbers["actors_starting"], 3);
  EXPECT_EQ(numbers["store_capacity_bytes"], 1000);
  EXPECT_EQ(numbers["store_spills"], 4);
  EXPECT_EQ(numbers["connections_refused"], 2);
  EXPECT_EQ(numbers["head_up"], 1) << "what else the node knows";
  EXPECT_GT(numbers["worker_memory_bytes"], 0);
  EXPECT_GT(numbers["cpus"], 0);
}

TEST_F(NodeIntrospectionTest, AsksTheKernelAboutItsWorkers) {
  workers_.add("actor");
  workers_.add("ending").pid = kNoProcess;
  make();
  const WorkerList list = seen<WorkerList>(ask(control::ListWorkers{}));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_GT(list[0].memory_bytes, 0u);
  EXPECT_GE(list[0].threads, 1u);
  EXPECT_NE(list[0].process, "");
  EXPECT_EQ(list[1].process, "") << "it has ended meanwhile";
}

TEST_F(NodeIntrospectionTest, AnswersTheSmallQuestions) {
  make();
  Numbers clock = seen<Numbers>(ask(control::ReadClock{}));
  EXPECT_GT(clock["steady_ns"], 0);
  EXPECT_GT(clock["wall_s"], 0);
  Numbers taken = seen<Numbers>(ask(control::Sink{"12345"}));
  EXPECT_EQ(taken["bytes"], 5);
  EXPECT_EQ(seen<std::string>(ask(control::ReadStart{workers_.lacking})),
            "no room for another process");
  EXPECT_EQ(seen<std::string>(ask(control::ReadStart{ActorId::random()})), "");
  EXPECT_EQ(status(ask(control::ReadHead{})).code(), ErrorCode::kUnimplemented);
}

TEST_F(NodeIntrospectionTest, TakesNoStackOfAnActorThatIsNotThere) {
  make();
  const ActorId actor = ActorId::random();
  EXPECT_EQ(status(ask(control::ReadStack{actor})),
            not_found("node " + options_.node.short_hex() + " runs no actor " + actor.short_hex()));
  run_on(loop_, [&] {
    workers_.add("actor").actor = actor;
    workers_.workers[0].pid = kNoProcess;
  });
  EXPECT_EQ(status(ask(control::ReadStack{actor})),
            not_found("process " + std::to_string(kNoProcess) + " has ended"));
}

TEST_F(NodeIntrospectionTest, ShowsWhatAProcessDoesUntilItIsGone) {
  make();
  auto page = ActivityPage::create();
  ASSERT_TRUE(page.ok()) << page.status().to_string();
  const std::vector<std::string> methods = {"add"};
  const auto of_class = (*page)->class_of("Counter", methods);
  const ActorId actor = ActorId::random();
  activity::ActorSlot* slot = (*page)->take_actor(actor, of_class);
  ASSERT_NE(slot, nullptr);
  adopt(*page);
  NodeLoad load = seen<NodeLoad>(ask(control::ReadLoad{}));
  ASSERT_EQ(load.classes.size(), 1u);
  EXPECT_EQ(load.classes[0].name, "Counter");
  ASSERT_EQ(load.actors.size(), 1u);
  EXPECT_EQ(load.actors[0].actor, actor);
  load = seen<NodeLoad>(ask(control::ReadLoad{0}));
  EXPECT_EQ(load.actors.size(), 0u);
  EXPECT_EQ(load.actors_left_out, 1u);
  run_on(loop_, [&] { node_->on_closed(*process_.near); });
  EXPECT_TRUE(seen<NodeLoad>(ask(control::ReadLoad{})).actors.empty());
}

TEST_F(NodeIntrospectionTest, APageThatIsNoneChangesNothing) {
  make();
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  Message message;
  message.kind = FrameKind::kActivity;
  run_on(loop_, [&] {
    node_->on_activity(*process_.near, message);
    message.fds.emplace_back(ends[0]);
    message.fds.emplace_back(ends[1]);
    node_->on_activity(*process_.near, message);
    message.fds.pop_back();
    node_->on_activity(*process_.near, message);
  });
  EXPECT_TRUE(seen<NodeLoad>(ask(control::ReadLoad{})).classes.empty());
}

TEST_F(NodeIntrospectionTest, RecordsWhatItsProcessesAndTheNodeDo) {
  WorkerInfo& worker = workers_.add("actor");
  worker.actor = ActorId::random();
  worker.class_name = "Counter";
  make();
  auto page = *ActivityPage::create();
  adopt(page);
  EXPECT_FALSE(page->records(activity_now()));
  FetchedObject fetched;
  fetched.from = "10.0.0.2:7000";
  fetched.bytes = 64;
  fetched.asked = steady_now();
  fetched.arrived = true;
  run_on(loop_, [&] { node_->on_fetched(fetched); });
  EXPECT_TRUE(seen<TraceChunk>(ask(control::Trace{0ms, true})).processes.empty());
  seen<Numbers>(ask(control::Trace{1min, false}));
  EXPECT_TRUE(page->records(activity_now()));
  activity::TraceEvent event;
  event.method = page->class_of("Counter", {}).constructor;
  page->record(event);
  run_on(loop_, [&] { node_->on_fetched(fetched); });
  const TraceChunk chunk = seen<TraceChunk>(ask(control::Trace{0ms, true}));
  ASSERT_EQ(chunk.processes.size(), 2u);
  EXPECT_EQ(chunk.processes[0].name, "Counter " + worker.actor.short_hex());
  EXPECT_EQ(chunk.processes[0].events.size(), sizeof(activity::TraceEvent));
  EXPECT_EQ(chunk.processes[1].name, "node " + options_.node.short_hex());
  EXPECT_EQ(chunk.processes[1].events.size(), sizeof(activity::TraceEvent));
  EXPECT_TRUE(std::any_of(
      chunk.processes[1].names.begin(), chunk.processes[1].names.end(),
      [](const std::string& name) { return name.find("10.0.0.2:7000") != std::string::npos; }));
}

TEST_F(NodeIntrospectionTest, AProgramWithoutMetricsHasNone) {
  make();
  EXPECT_EQ(status(ask(control::ReadMetrics{})).code(), ErrorCode::kUnimplemented);
  run_on(loop_, [&] { node_->on_http(FileDescriptor(), "GET /"); });
}

TEST_F(NodeIntrospectionTest, WritesMetricsWithWhatTheHeadSays) {
  provide_metrics();
  options_.is_head = true;
  workers_.counted.connected[1] = 2;
  workers_.counted.connected_sum_ns = 50;
  make();
  FetchedObject lost;
  lost.asked = steady_now();
  run_on(loop_, [&] { node_->on_fetched(lost); });
  const Answer first = ask(control::ReadMetrics{});
  run_on(loop_, [&] {
    EXPECT_FALSE(first->has_value());
    ASSERT_TRUE(asked_head_);
    EXPECT_TRUE(
        std::holds_alternative<control::ReadHead>(std::get<ObserveControl>(asked_head_->body)));
    head_(ControlAnswer{ObserveAnswer{Numbers{{"jobs", 2}}}});
  });
  EXPECT_EQ(seen<std::string>(first), "text");
  run_on(loop_, [&] {
    EXPECT_EQ(report_.head, (Numbers{{"jobs", 2}}));
    EXPECT_TRUE(report_.is_head);
    EXPECT_EQ(report_.worker_starts.calls, 2u);
    EXPECT_EQ(report_.worker_starts.sum_ns, 50u);
    EXPECT_EQ(report_.fetches.calls, 1u);
    EXPECT_EQ(report_.fetches.failed, 1u);
  });
  const Answer second = ask(control::ReadMetrics{});
  run_on(loop_, [&] { head_(unavailable("it is away")); });
  EXPECT_EQ(seen<std::string>(second), "text");
  run_on(loop_, [&] { EXPECT_TRUE(report_.head.empty()); });
}

TEST_F(NodeIntrospectionTest, MetricsOfANodeThatGoesMeanwhileEnd) {
  provide_metrics();
  options_.is_head = true;
  make();
  const Answer answer = ask(control::ReadMetrics{});
  std::optional<Result<std::string>> scraped;
  run_on(loop_, [&] {
    node_.reset();
    head_(ControlAnswer{});
    read_([&](Result<std::string> text) { scraped = std::move(text); });
  });
  EXPECT_EQ(status(answer), unavailable("the node is stopping"));
  ASSERT_TRUE(scraped);
  EXPECT_EQ(scraped->status(), unavailable("the node is stopping"));
}

TEST_F(NodeIntrospectionTest, ScrapersShowWhatFollowsFromTheToken) {
  provide_metrics();
  make();
  ASSERT_TRUE(server_options_.keys);
  EXPECT_EQ(server_options_.keys(), std::vector<std::string>{metrics_key("secret")});
  EXPECT_FALSE(server_options_.is_off);
  std::optional<Result<std::string>> scraped;
  run_on(loop_, [&] {
    node_->on_http(FileDescriptor(), "GET /metrics");
    read_([&](Result<std::string> text) { scraped = std::move(text); });
  });
  EXPECT_EQ(begun_, std::vector<std::string>{"GET /metrics"});
  ASSERT_TRUE(scraped && scraped->ok()) << "the head is elsewhere, and is not asked";
  EXPECT_EQ(**scraped, "text");
}

TEST_F(NodeIntrospectionTest, AccessToMetricsIsWhatTheOptionsSay) {
  provide_metrics();
  options_.access = MetricsAccess::kOpen;
  make();
  EXPECT_FALSE(server_options_.keys);
  EXPECT_FALSE(server_options_.is_off);
  options_.access = MetricsAccess::kOff;
  make();
  EXPECT_TRUE(server_options_.is_off);
}

TEST_F(NodeIntrospectionTest, MeasuresTheWayToAnotherNode) {
  HeadSocket other(loop_, Endpoint::tcp("127.0.0.1", 0));
  other.open();
  run_on(loop_, [&] {
    other.inbox.on_request = [&] { other.inbox.answer(ControlAnswer{ObserveAnswer{Numbers{}}}); };
  });
  make();
  Numbers numbers = seen<Numbers>(ask(control::MeasurePeer{other.endpoint().to_string(), 5 << 20}));
  EXPECT_GT(numbers["round_trip_s"], 0);
  EXPECT_GT(numbers["bytes_per_s"], 0);
  EXPECT_TRUE(comes_true(loop_, [&] { return other.open_connections() == 0; }));
}

TEST_F(NodeIntrospectionTest, SaysWhyAnotherNodeCannotBeMeasured) {
  make();
  EXPECT_EQ(status(ask(control::MeasurePeer{"nowhere", 1})).code(), ErrorCode::kInvalidArgument);
  HeadSocket other(loop_, Endpoint::tcp("127.0.0.1", 0));
  other.open();
  const std::string address = other.endpoint().to_string();
  const Answer refused = ask(control::MeasurePeer{address, 1});
  other.next<ObserveControl>();
  other.answer(unimplemented("an older release"));
  EXPECT_EQ(status(refused), unimplemented("an older release"));
  const Answer cut = ask(control::MeasurePeer{address, 1});
  other.next<ObserveControl>();
  other.close();
  EXPECT_EQ(status(cut).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(status(ask(control::MeasurePeer{address, 1})).code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace runtime
