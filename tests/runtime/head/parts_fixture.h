// One part of the head at a time. It has real tables, a scheduler and links that the test reads,
// and fakes of the managers that the part calls.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "head_fixture.h"
#include "runtime/head/actor_control.h"
#include "runtime/head/group_control.h"
#include "runtime/head/head_context.h"

namespace runtime {

/// Notes what is done to actors; those that die are dead in the tables.
class FakeActors final : public ActorControl {
 public:
  struct Stop {
    ActorId actor;
    std::chrono::milliseconds grace;
    std::string reason;
    bool drain;
  };
  explicit FakeActors(const HeadContext& context) : context_(context) {}

  void stop(const ActorRecord& record, std::chrono::milliseconds grace, std::string reason,
            bool drain) override {
    stops.push_back({record.spec.actor, grace, std::move(reason), drain});
  }
  void stop_torn(const ActorRecord& record, const std::string& text,
                 std::chrono::milliseconds grace) override {
    stops.push_back({record.spec.actor, grace, "torn: " + text, true});
  }
  void die(ActorId actor, const DeathCause& cause, const Status& why) override {
    context_.commit(command::ActorDead{actor, cause});
    deaths.emplace_back(actor, why);
  }

  std::vector<Stop> stops;
  std::vector<std::pair<ActorId, Status>> deaths;

 private:
  const HeadContext& context_;
};

/// Notes what is done to groups; those that are dropped or torn are so in the tables.
class FakeGroups final : public GroupControl {
 public:
  explicit FakeGroups(const HeadContext& context) : context_(context) {}

  void drop(GroupId group, const Status& why) override {
    context_.commit(command::RemoveGroup{group});
    dropped.emplace_back(group, why);
  }
  void tear(GroupId group, const std::string& text, std::chrono::milliseconds) override {
    context_.commit(command::GroupTorn{group, text});
    torn.push_back(group);
  }
  bool place(GroupId group) override {
    placed.push_back(group);
    return true;
  }
  void place_elsewhere(NodeId node) override { left.push_back(node); }

  std::vector<std::pair<GroupId, Status>> dropped;
  std::vector<GroupId> torn, placed;
  std::vector<NodeId> left;

 private:
  const HeadContext& context_;
};

class PartTest : public ::testing::Test {
 protected:
  NodeId add_node(double cpus) {
    NodeInfo info;
    info.node = NodeId::random();
    info.address = "10.0.0." + std::to_string(tables_.nodes().all().size() + 1) + ":1";
    info.resources = {{"CPU", cpus}};
    info.alive = true;
    EXPECT_TRUE(scheduler_.add_node(info).ok());
    context_.commit(command::AddNode{info});
    return info.node;
  }
  JobId add_job(NodeId node, const std::string& user = "") {
    JobInfo info;
    info.user = user;
    info.job = JobId::random();
    info.node = node;
    info.running = true;
    info.pid = 1;
    context_.commit(command::StartJob{info, {}});
    return info.job;
  }
  ActorSpec add_actor(JobId job, double cpus = 1, std::int32_t max_restarts = 0) {
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = "Counter";
    spec.resources = {{"CPU", cpus}};
    spec.max_restarts = max_restarts;
    return add_actor(job, spec);
  }
  ActorSpec add_actor(JobId job, const ActorSpec& spec) {
    context_.commit(command::AddActor{job, spec});
    return spec;
  }
  ActorSpec add_living(JobId job, double cpus = 1, std::int32_t max_restarts = 0) {
    const ActorSpec spec = add_actor(job, cpus, max_restarts);
    make_alive(spec);
    return spec;
  }
  void make_alive(const ActorSpec& spec) {
    auto place = scheduler_.place_actor(spec);
    ASSERT_TRUE(place.ok());
    const std::uint64_t incarnation = tables_.actors().next_incarnation();
    context_.commit(command::ActorPlaced{spec.actor, *place, incarnation});
    context_.commit(command::ActorAlive{address(spec, place->node, incarnation)});
  }
  static ActorAddress address(const ActorSpec& spec, NodeId node, std::uint64_t incarnation) {
    ActorAddress address;
    address.actor = spec.actor;
    address.node = node;
    address.incarnation = incarnation;
    address.worker = WorkerId::random();
    address.pid = 100;
    return address;
  }
  GroupSpec add_group(JobId job, std::size_t bundles) {
    GroupSpec spec;
    spec.group = GroupId::random();
    spec.strategy = GroupStrategy::kStrictSpread;
    spec.bundles.resize(bundles, {{"CPU", 1}});
    context_.commit(command::AddGroup{job, spec});
    return spec;
  }
  GroupSpec add_placed_group(JobId job, std::size_t bundles) {
    const GroupSpec spec = add_group(job, bundles);
    auto place = scheduler_.place_group(spec);
    EXPECT_TRUE(place.ok());
    if (place.ok()) context_.commit(command::GroupPlaced{spec.group, *place});
    return spec;
  }
  const ActorRecord& record(const ActorSpec& spec) { return *tables_.actors().find(spec.actor); }

  /// The part's answer to a request.
  template <class Part, class Body>
  Answer ask(Part& part, Body body, NodeId from = {}, JobId job = {},
             std::chrono::milliseconds timeout = std::chrono::seconds(10)) {
    auto answer = std::make_shared<std::optional<Result<ControlAnswer>>>();
    part.serve(HeadCall{from, job, time_ + timeout}, body, [answer](Result<ControlAnswer> result) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      answer->emplace(std::move(result));
    });
    return answer;
  }
  static Status status(const Answer& answer) {
    return answer->has_value() ? (*answer)->status() : internal_error("no answer yet");
  }

  Deadline time_ = Deadline() + std::chrono::hours(1);
  ClusterTables tables_;
  CpuScheduler scheduler_;
  RecordingLinks links_;
  const std::function<Deadline()> now_ = [this] { return time_; };
  HeadOptions options_;
  const HeadContext context_{tables_, scheduler_, links_, now_, options_};
};

}  // namespace runtime
