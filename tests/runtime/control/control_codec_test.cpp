#include "runtime/control/control_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace runtime {
namespace {

ActorSpec full_spec() {
  ActorSpec spec;
  spec.actor = ActorId::random();
  spec.class_name = "Counter";
  spec.name = "counter-1";
  spec.resources = {{"CPU", 0.5}, {"x", 2}};
  spec.env = {{"A", "1"}, {"B", ""}};
  spec.threads = 3;
  spec.bundle = BundleSlot{GroupId::random(), 4};
  spec.node_is_preferred = true;
  spec.scheduling = ActorScheduling::kSpread;
  spec.node = NodeId::random();
  spec.labels = {{"zone", "b"}};
  spec.constructor_args = std::string("\0\1\2binary", 9);
  spec.name_space = "team";
  spec.get_if_exists = true;
  spec.detached = true;
  spec.outlives_job = true;
  spec.max_restarts = -1;
  spec.create_timeout = std::chrono::milliseconds(1234);
  spec.owner = ActorId::random();
  spec.owner_incarnation = 17;
  spec.log_prefix = "left";
  spec.saved_state = std::string("\0state", 6);
  spec.caller_options = std::string("\0options", 8);
  return spec;
}

DriverInfo full_driver() {
  DriverInfo driver;
  driver.executable = {"/opt/driver", 123456, "0123456789abcdef0123456789abcdef"};
  driver.libraries = {{"/opt/libtorch_cpu.so", 451000000, ""}};
  driver.argv = {"./driver", "--steps", "10", ""};
  driver.working_dir = "/home/someone";
  driver.pid = 77;
  driver.warm_workers = 2;
  driver.name_space = "team";
  return driver;
}

DeathCause full_cause() { return {"killed by SIGSEGV", 42, -1, 11, "frame 0\nframe 1"}; }

NodeDrain full_drain() {
  return {"preemption", std::chrono::milliseconds(30'000),
          std::chrono::milliseconds(1'700'000'030'000), 5, "1 actor"};
}

NodeInfo full_node() {
  NodeInfo node;
  node.node = NodeId::random();
  node.address = "10.0.0.1:6399";
  node.hostname = "one";
  node.pid = 5;
  node.is_head = true;
  node.resources = {{"CPU", 8}};
  node.available = {{"CPU", 7.5}};
  node.labels = {{"kind", "spot"}};
  node.alive = false;
  node.joined_as = 4;
  node.drain = full_drain();
  return node;
}

GroupSpec full_group() {
  return {GroupId::random(),
          "gang",
          GroupStrategy::kStrictSpread,
          {{{"CPU", 1}}, {{"GPU", 1}, {"CPU", 2}}},
          {{}, {{"zone", "in(a, b)"}}},
          "lab",
          true};
}

JobInfo full_job() {
  return {JobId::random(),
          NodeId::random(),
          "./driver x",
          9,
          false,
          true,
          "alice",
          1'700'000'000'000,
          1'700'000'001'000,
          JobOutcome::kStopped,
          full_cause(),
          GroupId::random()};
}

JobFile full_file() {
  return {"sub/run", JobFile::Kind::kFile, true, 12, std::string(64, 'a'), ""};
}

std::vector<ControlRequest::Body> bodies_of_clients() {
  return {
      control::Heartbeat{},
      control::RegisterDriver{full_driver()},
      control::CreateActor{full_spec()},
      control::ResolveActor{ActorId::random(), "name", "team"},
      control::QueryActor{ActorId::random(), 4},
      control::KillActor{ActorId::random(), true},
      control::KvPut{"key", std::string("\0value", 6)},
      control::KvGet{"key", true},
      control::KvAdd{"key", -5},
      control::KvDelete{"key"},
      control::QueryCluster{},
      control::CreateGroup{full_group()},
      control::RemoveGroup{GroupId::random()},
      control::SubmitJob{{"./driver", "a b"}, "/tmp", {{"K", "V"}}},
      control::SubmitJob{{"./driver"},
                         "",
                         {},
                         true,
                         {full_file(),
                          {"link", JobFile::Kind::kLink, false, 0, "", "sub/run"},
                          {"sub", JobFile::Kind::kFolder, false, 0, "", ""}},
                         full_file()},
      control::SubmitJob{{"./driver"}, "", {}, true, {}, {}, JobId::random(), GroupId::random()},
      control::QueueJob{JobId::random(),
                        GroupId::random(),
                        {"./driver", "a b"},
                        {{"CPU", 2}, {"x", 0.5}},
                        {{"zone", "in(a, b)"}}},
      control::QueryJob{JobId::random()},
      control::OfferFiles{1 << 20, 3, {std::string(64, 'a'), "b"}},
      control::StoreFile{std::string(64, 'a'), 12, 4, std::string("\0data", 5)},
      control::DriverDone{-3},
      control::CancelJob{JobId::random()},
      control::ReadLog{"worker-1.log", 1 << 20, 77}};
}

/// Between nodes and the head, and about them.
std::vector<ControlRequest::Body> bodies_of_nodes() {
  return {
      control::StopNode{},
      control::RegisterNode{full_node(), false, NodeId::random(), {}, {}},
      control::RegisterNode{full_node(),
                            true,
                            {},
                            {{ActorId::random(), 7}, {ActorId::random(), 8}},
                            {JobId::random()}},
      control::StartJob{full_job(), full_driver()},
      control::EndJob{JobId::random(), JobOutcome::kSucceeded, full_cause(), 1'700'000'000'000,
                      true, true},
      control::ActorExited{ActorId::random(), 7, full_cause()},
      control::StartActor{full_spec(), 8, full_driver(), "10.0.0.2:1", {0, 3}},
      control::StopActor{ActorId::random(), 9, std::chrono::milliseconds(500), true,
                         "its owner ended"},
      control::BuildActor{full_spec(), 10},
      control::FetchFile{"abc", 4 << 20},
      control::TerminateActor{ActorId::random(), true},
      control::WatchActor{ActorId::random(), 6},
      control::WatchNodes{7},
      control::SaveState{ActorId::random(), 8, std::string("\0s", 2)},
      control::DrainActor{ActorId::random(), 9},
      control::ActorsExited{{{ActorId::random(), 7}, {ActorId::random(), 8}}, full_cause()},
      control::ParkActor{ActorId::random()},
      control::ConstructorAwaited{ActorId::random(), "parent", "lab", std::string("\0notice", 7)},
      control::DrainNode{NodeId::random(), std::chrono::seconds(30), "preemption"},
      control::ChangeToken{std::string("a\0b", 3), std::chrono::minutes(10)},
      control::ExpectToken{"next"},
      control::TakeOver{NodeId::random()},
      control::Leave{"it was drained"},
      ObjectControl{control::ListObjects{}},
      control::QueryGroup{GroupId::random(), "gang", "lab", true},
      control::Reserve{true,
                       {GroupId::random()},
                       {{GroupId::random(), {{"CPU", 0.5}}}, {GroupId::random(), {}}},
                       {GroupId::random(), GroupId::random()}},
      control::QueryDemand{},
      ObserveControl{control::ReadClock{}}};
}

std::vector<ControlRequest::Body> all_bodies() {
  std::vector<ControlRequest::Body> all = bodies_of_clients();
  for (ControlRequest::Body& body : bodies_of_nodes()) all.push_back(std::move(body));
  return all;
}

Demand full_demand() {
  Demand demand;
  demand.actors = {{{{"CPU", 2}}, {{"zone", "b"}}, 7, "actor Counter 7f3a0011"}, {}};
  demand.jobs = {{{{"CPU", 1}}, {}, 1, "job 1234"}};
  demand.groups = {{{GroupId::random(), "gang", GroupStrategy::kSpread, {{{"CPU", 1}}}}, 3}};
  demand.unlisted = 4;
  demand.bound = 5;
  NodeUse use;
  use.info.node = NodeId::random();
  use.actors = 1, use.bundles = 2, use.jobs = 3, use.sole_copies = 4, use.last_placed = 5;
  demand.nodes = {use};
  return demand;
}

std::vector<ObserveControl> all_observe_requests() {
  return {control::ListActors{{{"state", "alive"}, {"class", ""}}, ActorId::random(), 12},
          control::ReadHead{},
          control::ReadLoad{7},
          control::ListWorkers{},
          control::ReadStack{ActorId::random()},
          control::ReadMetrics{},
          control::Trace{std::chrono::milliseconds(1500), true},
          control::ReadClock{},
          control::MeasurePeer{"10.0.0.1:6399", 1 << 20},
          control::Sink{std::string("\0bytes", 6)},
          control::ReadStart{ActorId::random()}};
}

std::vector<ObserveAnswer> all_observe_answers() {
  ActorState state;
  state.actor = ActorId::random();
  state.class_name = "Counter";
  ClassLoad load{"Counter", 10, 2, 12345, {1, 2, 7}, 3, 4};
  ActorLoad actor{ActorId::random(), "Counter", 77, 10, 2, 999, 3, "add", 55};
  WorkerInfo worker{WorkerId::random(),
                    NodeId::random(),
                    JobId::random(),
                    5,
                    "actor",
                    ActorId::random(),
                    "Counter",
                    1,
                    1 << 20,
                    1.5,
                    4,
                    "sleeping",
                    std::chrono::milliseconds(1500)};
  ThreadStack thread{9,     "actor", "sleeping",        "futex_wait", ActorId::random(),
                     "add", 17,      {"inner", "outer"}};
  return {ActorPage{{state, {}}, ActorId::random()},
          NodeLoad{NodeId::random(),
                   1234,
                   {{"cpus", 4}, {"memory_used_bytes", 0.5}},
                   {load, {}},
                   {actor, {}},
                   6},
          WorkerList{worker, {}},
          StackReport{5, "Counter", "stopped", "SIGCONT lets it go on", {thread, {}}},
          std::string("text\0\xff", 6),
          TraceChunk{1234, {{5, "driver", {"add", ""}, std::string(128, '\1'), 3}, {}}},
          Numbers{{"steady_ns", 1e15}, {"wall_s", -0.25}}};
}

ObjectLocation some_location() {
  return {ObjectId::random(), NodeId::random(), "10.0.0.1:7000", 0, 17, 4096 + 64, 123456789};
}

std::vector<ObjectControl> all_object_requests() {
  return {control::Publish{"team", "weights", 7, 2, 3, std::string("\0bytes", 6)},
          control::FindPublished{"team", "weights", 8, true, true},
          control::Unpublish{"team", "weights", 9},
          control::ListObjects{},
          control::AdoptObject{some_location()},
          control::DropObject{some_location()},
          control::FindObject{ObjectId::random(), NodeId::random()}};
}

ObjectList full_list() {
  ObjectInfo object;
  object.id = ObjectId::random();
  object.node = NodeId::random();
  object.size = 1 << 20;
  object.place = ObjectPlace::kDisk;
  object.owner_node = NodeId::random();
  object.owner_pid = 12;
  object.owner = "Counter 7f3a0011";
  object.age = std::chrono::milliseconds(1500);
  object.handles = 1;
  object.lent = 2;
  object.in_flight = 3;
  object.held = 4;
  object.readers = 5;
  object.borrowers = {{NodeId::random(), 13, 6, "driver"}};
  object.published = {"team/weights@7"};
  object.copies = {NodeId::random()};
  return {{object, {}},
          {{NodeId::random(), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
          true,
          {"a node is silent"}};
}

TEST(ControlCodec, EveryRequestComesBackEqual) {
  auto bodies = all_bodies();
  std::set<std::size_t> kinds;
  for (const auto& body : bodies) kinds.insert(body.index());
  ASSERT_EQ(kinds.size(), std::variant_size_v<ControlRequest::Body>);
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    ControlRequest request{JobId::random(), std::chrono::milliseconds(1234), bodies[i],
                           i % 2 ? RequestId::random() : RequestId()};
    auto decoded = decode_control_request(encode(request));
    ASSERT_TRUE(decoded.ok()) << i << ": " << decoded.status().message();
    EXPECT_EQ(*decoded, request) << i;
  }
}

TEST(ControlCodec, EveryObjectRequestAndAnswerComesBackEqual) {
  auto requests = all_object_requests();
  requests.push_back(
      control::Publish{"", "w", 1, 1, 1, std::vector<ObjectLocation>{some_location()}});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i < std::variant_size_v<ObjectControl>) {
      EXPECT_TRUE(std::any_of(requests.begin(), requests.end(),
                              [&](const auto& request) { return request.index() == i; }));
    }
    ControlRequest request{JobId::random(), std::chrono::milliseconds(1234), requests[i]};
    auto decoded = decode_control_request(encode(request));
    ASSERT_TRUE(decoded.ok()) << i << ": " << decoded.status().message();
    EXPECT_EQ(*decoded, request) << i;
  }
  for (const ObjectControlAnswer& objects :
       {ObjectControlAnswer(PublishedObject{"w", 3, std::vector<ObjectLocation>{some_location()}}),
        ObjectControlAnswer(some_location()), ObjectControlAnswer(full_list())}) {
    auto decoded = decode_control_reply(encode(Result<ControlAnswer>(ControlAnswer(objects))));
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    EXPECT_EQ(*decoded, ControlAnswer(objects)) << objects.index();
  }
}

TEST(ControlCodec, EveryRequestAndAnswerToSeeWhatHappensComesBackEqual) {
  const auto requests = all_observe_requests();
  ASSERT_EQ(requests.size(), std::variant_size_v<ObserveControl>);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].index(), i);
    ControlRequest request{JobId::random(), std::chrono::milliseconds(1234), requests[i]};
    auto decoded = decode_control_request(encode(request));
    ASSERT_TRUE(decoded.ok()) << i << ": " << decoded.status().message();
    EXPECT_EQ(*decoded, request) << i;
  }
  const auto answers = all_observe_answers();
  ASSERT_EQ(answers.size(), std::variant_size_v<ObserveAnswer>);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].index(), i);
    auto decoded = decode_control_reply(encode(Result<ControlAnswer>(ControlAnswer(answers[i]))));
    ASSERT_TRUE(decoded.ok()) << i << ": " << decoded.status().message();
    EXPECT_EQ(*decoded, ControlAnswer(answers[i])) << i;
  }
}

TEST(ControlCodec, EveryAnswerComesBackEqual) {
  ActorState state;
  state.actor = ActorId::random();
  state.job = JobId::random();
  state.class_name = "Counter";
  state.phase = ActorPhase::kDead;
  state.pending_reason = "no GPU";
  state.resources = {{"CPU", 1}};
  state.death = full_cause();
  state.restarts = 2;
  state.moves = 1;
  state.incarnation = 5;
  state.name_space = "team";
  state.detached = true;
  state.version = 9;
  state.gpus = {2, 5};
  ActorAddress address{ActorId::random(),
                       WorkerId::random(),
                       NodeId::random(),
                       "Counter",
                       "/tmp/w.sock",
                       "h:1",
                       77,
                       12,
                       std::string("\0options", 8)};
  GroupState group;
  group.spec = {GroupId::random(), "g", GroupStrategy::kSpread, {{{"CPU", 1}}}};
  group.placed = true;
  group.nodes = {NodeId::random()};
  group.gpus = {{1, 2}};
  group.placements = 3;
  ClusterState cluster;
  cluster.cluster = ClusterId::random();
  cluster.nodes.resize(2);
  cluster.nodes[1].drain = NodeDrain{"preemption", std::chrono::milliseconds(5000),
                                     std::chrono::milliseconds(1'700'000'000'000), 4, "2 actors"};
  cluster.actors = {state};
  cluster.groups = {group};
  cluster.jobs.resize(1);
  std::vector<ControlAnswer> answers{
      std::monostate{},
      JobId::random(),
      address,
      state,
      std::string("a\0b", 3),
      std::int64_t{-3},
      cluster,
      group,
      control::LogChunk{"text\xff", 99, 7, 1ull << 40},
      control::NodeList{3, cluster.nodes, {{cluster.nodes[1], "it was drained", true, 5}}},
      ObjectControlAnswer(full_list()),
      control::Refusals{{{GroupId::random(), "it is stopping"}}},
      JobInfo{JobId::random(), NodeId::random(), "x", 3, false, true, "bob", 1, 2,
              JobOutcome::kFailed, full_cause()},
      control::FilesWanted{{1, 5}},
      full_demand(),
      ObserveAnswer(all_observe_answers().back())};
  ASSERT_EQ(answers.size(), std::variant_size_v<ControlAnswer>);
  for (const ControlAnswer& answer : answers) {
    auto decoded = decode_control_reply(encode(Result<ControlAnswer>(answer)));
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    EXPECT_EQ(*decoded, answer) << answer.index();
  }
}

TEST(ControlCodec, AFailureTravelsAsItself) {
  Status failure = resource_exhausted("GPU 1 (has 0)");
  EXPECT_EQ(decode_control_reply(encode(Result<ControlAnswer>(failure))).status(), failure);
}

TEST(ControlCodec, EveryEventComesBackEqual) {
  LogLines lines{JobId::random(), WorkerId::random(), NodeId::random(), "Counter", 5, true,
                 {"one", ""}};
  ActorState state;
  state.actor = ActorId::random();
  std::vector<ControlEvent> events{
      lines,
      control::JobOutput{JobId::random(), true, "bytes\0"},
      control::JobExited{JobId::random(), full_cause()},
      control::ActorsDied{JobId::random(), {ActorId::random(), ActorId::random()}},
      control::Shutdown{unavailable("bye"), "a machine"},
      control::NodeDrains{NodeId::random(), full_drain()},
      control::TokenChanged{
          {std::string("new\0", 4), 7, {{"old", std::chrono::seconds(5), std::chrono::hours(1)}}}}};
  ASSERT_EQ(events.size(), std::variant_size_v<ControlEvent>);
  for (const ControlEvent& event : events) {
    auto decoded = decode_control_event(encode(event));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(*decoded, event) << event.index();
  }
}

TEST(ControlCodec, RefusesAMissingDeadline) {
  // A message of zeros is a well-formed request without one.
  auto decoded =
      decode_control_request(Buffer::adopt(std::vector<std::uint64_t>{0x0000000100000000, 0}));
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.status().code(), ErrorCode::kInvalidArgument);
}

TEST(ControlCodec, ARequestOfANewerReleaseIsRefused) {
  const auto encoded = [](ControlRequest::Body body) {
    return std::string(encode(ControlRequest{{}, std::chrono::seconds(1), std::move(body)}).text());
  };
  // They differ in what kind of request they are alone.
  std::string newer = encoded(control::Heartbeat{});
  const std::string other = encoded(control::QueryCluster{});
  ASSERT_EQ(newer.size(), other.size());
  const auto kind = std::mismatch(newer.begin(), newer.end(), other.begin()).first;
  ASSERT_NE(kind, newer.end());
  *kind = static_cast<char>(0xf0);
  const Status refused = decode_control_request(Buffer::copy_of(newer)).status();
  EXPECT_EQ(refused.code(), ErrorCode::kUnimplemented) << refused.to_string();
}

TEST(ControlCodec, DamagedBytesNeverCrash) {
  std::mt19937 random(11);
  auto bodies = all_bodies();
  for (const ObjectControl& request : all_object_requests()) bodies.push_back(request);
  for (const ObserveControl& request : all_observe_requests()) bodies.push_back(request);
  for (const auto& body : bodies) {
    Buffer good = encode(ControlRequest{JobId::random(), std::chrono::milliseconds(1), body});
    std::vector<std::uint64_t> words(good.size() / 8);
    for (int round = 0; round < 300; ++round) {
      std::memcpy(words.data(), good.data(), good.size());
      for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips)
        words[random() % words.size()] ^= 1ull << (random() % 64);
      words.resize(1 + random() % words.size());
      auto decoded = decode_control_request(Buffer::adopt(words));
      if (!decoded.ok()) {
        EXPECT_TRUE(decoded.status().code() == ErrorCode::kInvalidArgument ||
                    decoded.status().code() == ErrorCode::kUnimplemented);
      }
      words.resize(good.size() / 8);
    }
  }
  EXPECT_FALSE(decode_control_request(Buffer()).ok());
}

}  // namespace
}  // namespace runtime
