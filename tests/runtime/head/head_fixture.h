// A head driven by hand: a scheduler that counts, links that keep what is sent, a clock that is
// told.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "runtime/head/cluster_tables.h"
#include "runtime/head/head.h"
#include "tests/support/table_indexes.h"

namespace runtime {

/// Counts CPUs, nothing else: how the head uses a scheduler does not depend on what that one
/// weighs.
class CpuScheduler final : public Scheduler {
 public:
  Status add_node(const NodeInfo& node) override {
    if (left_.contains(node.node)) return invalid_argument("it has joined already");
    left_[node.node] = node.resources.contains("CPU") ? node.resources.at("CPU") : 0;
    return {};
  }
  void remove_node(NodeId node) override { left_.erase(node); }
  void set_open(NodeId node, bool open) override {
    if (open)
      closed_.erase(node);
    else
      closed_.insert(node);
  }
  void begin_drain(NodeId node) override { drains_.insert(node); }
  Result<ActorPlace> move_actor(const ActorSpec& actor) override {
    const auto before = held_.at(actor.actor);
    held_.erase(actor.actor);
    auto place = place_actor(actor);
    if (!place.ok())
      held_[actor.actor] = before;
    else if (left_.contains(before.first))
      left_[before.first] += before.second;
    return place;
  }
  Status check_move(const GroupSpec& group) const override {
    std::size_t whole = 0;
    for (const auto& [node, left] : left_) {
      const auto& own = groups_.at(group.group);
      if (drains_.contains(node)) continue;
      const double cpus = left + static_cast<double>(std::count(own.begin(), own.end(), node));
      whole += group.strategy == GroupStrategy::kStrictSpread ? (cpus >= 1 ? 1 : 0)
                                                              : static_cast<std::size_t>(cpus);
    }
    return whole >= group.bundles.size() ? Status()
                                         : resource_exhausted("no room for the group elsewhere");
  }
  Result<ActorPlace> place_actor(const ActorSpec& actor) override {
    double cpus = actor.resources.contains("CPU") ? actor.resources.at("CPU") : 0;
    if (cpus < 0) return invalid_argument("below zero");
    if (actor.bundle) return ActorPlace{groups_.at(actor.bundle->group).at(actor.bundle->index)};
    for (auto& [node, left] : left_) {
      if (left < cpus || drains_.contains(node) || closed_.contains(node)) continue;
      left -= cpus;
      held_[actor.actor] = {node, cpus};
      return ActorPlace{node};
    }
    return resource_exhausted("no node has CPU " + std::to_string(cpus));
  }
  void release_actor(ActorId actor) override {
    auto found = held_.find(actor);
    if (found == held_.end()) return;
    if (left_.contains(found->second.first)) left_[found->second.first] += found->second.second;
    held_.erase(found);
  }
  /// A CPU for each bundle; STRICT_SPREAD: of different nodes.
  Result<GroupPlace> place_group(const GroupSpec& group) override {
    GroupPlace place;
    std::map<NodeId, double> left = left_;
    for (std::size_t b = 0; b < group.bundles.size(); ++b) {
      for (auto& [node, cpus] : left) {
        if (cpus < 1 || closed_.contains(node) || drains_.contains(node) || place.nodes.size() > b)
          continue;
        cpus = group.strategy == GroupStrategy::kStrictSpread ? 0 : cpus - 1;
        place.nodes.push_back(node);
      }
      if (place.nodes.size() == b) return resource_exhausted("no room for the group");
    }
    for (NodeId node : place.nodes) left_[node] -= 1;
    groups_[group.group] = place.nodes;
    return place;
  }
  void remove_group(GroupId group) override {
    for (NodeId node : groups_[group]) {
      if (left_.contains(node)) left_[node] += 1;
    }
    groups_.erase(group);
  }
  void restore_actor(const ActorSpec& actor, const ActorPlace& place) override {
    const double cpus = actor.resources.contains("CPU") ? actor.resources.at("CPU") : 0;
    if (left_.contains(place.node)) left_[place.node] -= cpus;
    held_[actor.actor] = {place.node, cpus};
  }
  void restore_group(const GroupSpec& group, const GroupPlace& place) override {
    for (NodeId node : place.nodes) {
      if (left_.contains(node)) left_[node] -= 1;
    }
    groups_[group.group] = place.nodes;
  }
  ResourceMap available(NodeId node) const override {
    auto found = left_.find(node);
    return found == left_.end() ? ResourceMap() : ResourceMap{{"CPU", found->second}};
  }

 private:
  std::map<NodeId, double> left_;
  std::set<NodeId> drains_;
  std::map<ActorId, std::pair<NodeId, double>> held_;
  std::map<GroupId, std::vector<NodeId>> groups_;
  std::set<NodeId> closed_;
};

struct SentRequest {
  NodeId node;
  ControlRequest request;
  ControlAnswerer answer;
};

/// Keeps what the head sends, for the test to answer.
class RecordingLinks final : public HeadLinks {
 public:
  void request(NodeId node, ControlRequest request, ControlAnswerer answer) override {
    requests.push_back({node, std::move(request), std::move(answer)});
  }
  void event(NodeId node, const ControlEvent& event) override { events.push_back({node, event}); }
  void when_recorded(UniqueFunction<void()> action) override {
    if (journal_stalls)
      unrecorded.push_back(std::move(action));
    else
      action();
  }
  bool is_connected(NodeId node) const override { return !away.contains(node); }

  template <class Body>
  std::optional<SentRequest> take() {
    for (auto at = requests.begin(); at != requests.end(); ++at) {
      if (!std::holds_alternative<Body>(at->request.body)) continue;
      SentRequest sent = std::move(*at);
      requests.erase(at);
      return sent;
    }
    return std::nullopt;
  }

  std::set<NodeId> away;
  bool journal_stalls = false;
  std::vector<UniqueFunction<void()>> unrecorded;  // meanwhile
  std::deque<SentRequest> requests;
  std::vector<std::pair<NodeId, ControlEvent>> events;
};

using Answer = std::shared_ptr<std::optional<Result<ControlAnswer>>>;

class HeadTest : public ::testing::Test {
 protected:
  HeadTest()
      : head_(ClusterId::random(), std::make_unique<CpuScheduler>(), links_,
              [this] { return now_; }) {
    head_.follow();
    node_ = join(4);
    start_job(job_);
  }

  Head& head() { return restarted_ ? *restarted_ : head_; }
  /// kill -9, and another head with the same journal. Requests under way are lost.
  void restart_head() {
    record_changes();
    links_.requests.clear();
    links_.events.clear();
    restarted_ = std::make_unique<Head>(ClusterId::random(), std::make_unique<CpuScheduler>(),
                                        links_, [this] { return now_; });
    for (const auto& [key, value] : journal_) {
      auto entry = journal::decode(value);
      ASSERT_TRUE(entry.ok()) << key << ": " << entry.status().to_string();
      ASSERT_TRUE(restarted_->restore(*entry).ok()) << key;
    }
    ASSERT_TRUE(restarted_->end_restore().ok());
    EXPECT_EQ(support::index_errors(restarted_->tables()), "");
    restarted_->follow();
  }
  /// A node comes back, with these actors and jobs.
  Status return_node(NodeId node, std::vector<control::ActorInstance> actors,
                     std::vector<JobId> jobs) {
    NodeInfo info;
    info.node = node;
    info.resources = {{"CPU", 4}};
    return status(
        ask(control::RegisterNode{info, true, {}, std::move(actors), std::move(jobs)}, {}, node));
  }
  control::ActorInstance instance(const ActorSpec& spec) { return {spec.actor, incarnation(spec)}; }

  Answer ask(ControlRequest::Body body, JobId job = {}, NodeId from = {},
             std::chrono::milliseconds timeout = std::chrono::seconds(10), RequestId id = {}) {
    record_changes();
    auto answer = std::make_shared<std::optional<Result<ControlAnswer>>>();
    head().handle(from.is_none() ? node_ : from,
                  ControlRequest{job.is_none() ? job_ : job, timeout, std::move(body), id},
                  [answer](Result<ControlAnswer> result) {
                    EXPECT_FALSE(answer->has_value()) << "answered twice";
                    answer->emplace(std::move(result));
                  });
    return answer;
  }
  /// In every test: a journal that has followed gives the same tables.
  void TearDown() override {
    record_changes();
    ClusterTables restored;
    for (const auto& [key, value] : journal_) {
      auto entry = journal::decode(value);
      ASSERT_TRUE(entry.ok()) << key << ": " << entry.status().to_string();
      const Status status = restored.restore(*entry);
      ASSERT_TRUE(status.ok()) << key << ": " << status.to_string();
    }
    const Status status = restored.end_restore();
    ASSERT_TRUE(status.ok()) << status.to_string();
    expect_equal(restored, head().tables());
    EXPECT_EQ(support::index_errors(restored), "");
  }
  void record_changes() {
    EXPECT_EQ(support::index_errors(head().tables()), "");
    for (const JournalWrite& write : head().changes()) {
      if (write.value)
        journal_[write.key] = *write.value;
      else
        journal_.erase(write.key);
    }
  }
  static void expect_equal(const ClusterTables& left, const ClusterTables& right) {
    EXPECT_TRUE(left.nodes().all() == right.nodes().all());
    EXPECT_TRUE(left.nodes().departures() == right.nodes().departures());
    EXPECT_TRUE(left.jobs().all() == right.jobs().all());
    EXPECT_TRUE(left.pairs().all() == right.pairs().all());
    EXPECT_TRUE(left.published().all() == right.published().all());
    EXPECT_TRUE(left.requests().all() == right.requests().all());
    EXPECT_EQ(left.actors().next_incarnation(), right.actors().next_incarnation());
    EXPECT_EQ(left.nodes().version(), right.nodes().version());
    EXPECT_EQ(left.actors().dead(), right.actors().dead());
    EXPECT_EQ(left.actors().all().size(), right.actors().all().size());
    for (const auto& [id, record] : right.actors().all()) {
      const ActorRecord* other = left.actors().find(id);
      ASSERT_NE(other, nullptr) << id.hex();
      ActorRecord expected = record;
      expected.pending_reason = other->pending_reason;  // said again when it looks for a place
      EXPECT_TRUE(*other == expected) << id.hex();
      EXPECT_EQ(left.actors().owned_by(id), right.actors().owned_by(id));
      EXPECT_EQ(left.job_serves(record.job), right.job_serves(record.job));
      const bool is_named = !record.spec.name.empty() && record.phase != ActorPhase::kDead;
      if (is_named) {
        EXPECT_EQ(left.actors().named(record.spec.name_space, record.spec.name), other);
      }
    }
    EXPECT_EQ(left.groups().all().size(), right.groups().all().size());
    for (const auto& [id, group] : right.groups().all()) {
      const GroupState* other = left.groups().find(id);
      ASSERT_NE(other, nullptr) << id.hex();
      GroupState expected = group;
      expected.pending_reason = other->pending_reason;
      EXPECT_TRUE(*other == expected) << id.hex();
    }
  }
  void advance(std::chrono::milliseconds time) {
    now_ += time;
    head().tick();
  }
  NodeId join(double cpus) {
    NodeInfo info;
    info.node = NodeId::random();
    info.address = "10.0.0." + std::to_string(++joined_) + ":1";
    info.resources = {{"CPU", cpus}};
    Answer joined = ask(control::RegisterNode{info}, {}, info.node);
    EXPECT_TRUE((*joined)->ok());
    return info.node;
  }
  void start_job(JobId job, NodeId from = {}) {
    EXPECT_TRUE((*ask(control::StartJob{driver_job(job), {}}, job, from))->ok());
  }
  /// A driver that was simply run.
  static JobInfo driver_job(JobId job) {
    JobInfo info;
    info.job = job;
    info.command = "./driver";
    info.pid = 1;
    return info;
  }
  static ActorSpec actor(double cpus = 1, std::string name = "") {
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = "Counter";
    spec.name = std::move(name);
    spec.resources = {{"CPU", cpus}};
    return spec;
  }
  /// Creates an actor and answers the start as its node would.
  ActorSpec living(double cpus = 1, std::string name = "") {
    return living(actor(cpus, std::move(name)));
  }
  ActorSpec living(ActorSpec spec) {
    Answer created = ask(control::CreateActor{spec});
    EXPECT_TRUE(started());
    EXPECT_TRUE(created->has_value() && (*created)->ok());
    return spec;
  }
  /// Answers the next start as the node would; false if the head has asked for none.
  bool started() {
    auto start = links_.take<control::StartActor>();
    if (!start) return false;
    ActorAddress address;
    address.worker = WorkerId::random();
    address.node = start->node;
    address.pid = 100;
    start->answer(ControlAnswer{address});
    return true;
  }
  /// Answers the head's next messages about groups as nodes would that take everything; how many
  /// there were.
  int reserved() {
    int count = 0;
    for (auto reserve = links_.take<control::Reserve>(); reserve;
         reserve = links_.take<control::Reserve>()) {
      reserve->answer(ControlAnswer{control::Refusals{}});
      ++count;
    }
    return count;
  }
  /// Its process ended.
  void exit(const ActorSpec& spec) {
    ask(control::ActorExited{spec.actor, incarnation(spec), {"killed by SIGKILL", 100, -1, 9, ""}},
        {}, head().tables().actors().find(spec.actor)->node);
  }
  const ActorRecord& record(const ActorSpec& spec) {
    return *head().tables().actors().find(spec.actor);
  }
  std::uint64_t incarnation(const ActorSpec& spec) {
    return head().tables().actors().find(spec.actor)->incarnation;
  }
  static Status status(const Answer& answer) {
    EXPECT_TRUE(answer->has_value()) << "no answer yet";
    return answer->has_value() ? (*answer)->status() : internal_error("no answer yet");
  }

  Deadline now_ = std::chrono::steady_clock::now();
  RecordingLinks links_;
  Head head_;
  NodeId node_;
  JobId job_ = JobId::random();
  int joined_ = 0;
  std::map<std::string, std::string> journal_;
  std::unique_ptr<Head> restarted_;
};

}  // namespace runtime
