// The planner against a world with its own scheduler, in which everything fails, comes late or
// is lost, from a seed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "placement/autoscaler/planner.h"
#include "placement/scheduler/cluster_scheduler.h"

namespace placement {
namespace {

using namespace std::chrono_literals;
using runtime::NodeId;
using runtime::Status;

struct Machine {
  NodeRecord record;
  runtime::Deadline joins;  // max: never
  NodeId node;              // once it has
  bool retired = false;
  runtime::Deadline joined{};
};

struct Work {
  bool is_group = false;
  runtime::ActorSpec actor;
  runtime::GroupSpec group;
  std::chrono::seconds takes{0};
  bool placed = false;
  runtime::Deadline ends{};
  std::vector<NodeId> nodes;
};

class World {
 public:
  explicit World(unsigned seed) : random_(seed) {
    config_.max_nodes = 4 + pick(8);
    config_.min_nodes = pick(3);
    config_.idle_timeout = std::chrono::seconds(10 + pick(60));
    config_.start_timeout = std::chrono::seconds(20 + pick(60));
    config_.up_cooldown = std::chrono::seconds(pick(10));
    config_.down_cooldown = std::chrono::seconds(pick(30));
    config_.retry_max = 30s;
    add_type("small", {{"CPU", 2}}, {});
    add_type("big", {{"CPU", 8}}, {{"zone", "b"}});
    add_type("gpu", {{"CPU", 4}, {"GPU", 2}}, {});
    restart();
    head_ = add_node({{"CPU", 1}}, {});
    others_ = 1;
  }

  void run(int ticks, bool with_faults, bool with_work) {
    for (int tick = 0; tick < ticks && !::testing::Test::HasFatalFailure(); ++tick) {
      now_ += 1s;
      faults_ = with_faults;
      if (with_work && chance(0.1)) new_work();
      if (with_faults && chance(0.01)) restart();
      if (with_faults && chance(0.02)) lose_one();
      if (with_faults && others_ < 2 && chance(0.005)) add_node({{"CPU", 2}}, {}), ++others_;
      work();
      answer();
      if (chance(0.02)) list();
      act(planner_->step(demand(), now_));
      check();
    }
  }

  bool works() const { return !work_.empty(); }
  std::size_t machines() const { return machines_.size(); }
  std::size_t nodes() const { return others_ + machines_.size(); }
  const AutoscalerConfig& config() const { return config_; }
  std::string explain() const {
    std::string text;
    for (const DemandReport& report : planner_->demand())
      text += report.what + ": " + std::to_string(report.unmet) + " unmet, " + report.reason + "\n";
    for (const auto& [id, node] : planner_->nodes())
      text += id + " " + std::string(to_string(node.phase)) + " " + node.reason + "\n";
    for (const auto& note : planner_->decisions()) text += note.text + "\n";
    for (const std::string& why : planner_->holding_back()) text += why + "\n";
    return text;
  }

 private:
  struct Later {
    runtime::Deadline at;
    std::function<void()> happen;
  };

  std::size_t pick(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }
  bool chance(double share) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < share;
  }
  bool goes_wrong(double share) { return faults_ && chance(share); }

  void add_type(const std::string& name, const runtime::ResourceMap& resources,
                runtime::Labels labels) {
    NodeType type;
    type.name = name;
    type.resources = *Resources::from_map(resources);
    type.labels = std::move(labels);
    type.max_nodes = 3 + pick(3);
    type.min_nodes = name == "small" ? pick(2) : 0;
    type.spot.share = static_cast<double>(pick(3)) / 2;
    type.spot.on_demand_base = pick(2);
    type.spot.fallback = 60s;
    config_.types.push_back(type);
  }

  /// kill -9 of the autoscaler: outcomes that it has not received are lost.
  void restart() {
    ++life_;
    planner_ = std::make_unique<NodePlanner>(
        config_, [this](const std::string& type) { return type + "-" + std::to_string(++ids_); });
    planner_->restore(recorded_, now_);
  }

  NodeId add_node(const runtime::ResourceMap& resources, runtime::Labels labels) {
    runtime::NodeInfo info;
    info.node = NodeId::random();
    info.resources = resources;
    info.labels = std::move(labels);
    EXPECT_TRUE(scheduler_.add_node(info).ok());
    infos_[info.node] = info;
    return info.node;
  }

  void end_node(NodeId node) {
    scheduler_.remove_node(node);
    infos_.erase(node);
    for (Work& work : work_) {
      if (!work.placed || std::find(work.nodes.begin(), work.nodes.end(), node) == work.nodes.end())
        continue;
      release(work);  // and it waits again
      work.placed = false;
    }
  }

  void release(const Work& work) {
    if (work.is_group)
      scheduler_.remove_group(work.group.group);
    else
      scheduler_.release_actor(work.actor.actor);
  }

  void lose_one() {
    if (machines_.empty()) return;
    auto lost = std::next(machines_.begin(), static_cast<std::ptrdiff_t>(pick(machines_.size())));
    if (lost->second.node.is_none()) return;
    end_node(lost->second.node);
    machines_.erase(lost);
  }

  void new_work() {
    Work work;
    work.takes = std::chrono::seconds(5 + pick(120));
    work.is_group = chance(0.3);
    if (work.is_group) {
      work.group.group = runtime::GroupId::random();
      work.group.strategy = static_cast<runtime::GroupStrategy>(pick(4));
      const std::size_t bundles = 1 + pick(3);
      for (std::size_t b = 0; b < bundles; ++b)
        work.group.bundles.push_back({{"CPU", 1.0 + static_cast<double>(pick(2))}});
    } else {
      work.actor.actor = runtime::ActorId::random();
      work.actor.class_name = "A";
      switch (pick(4)) {
        case 0: work.actor.resources = {{"CPU", 2}}; break;
        case 1: work.actor.resources = {{"CPU", 0.5}}; break;
        case 2: work.actor.resources = {{"CPU", 1}, {"GPU", 1}}; break;
        default: work.actor.resources = {{"CPU", 5}}, work.actor.labels = {{"zone", "b"}};
      }
    }
    work_.push_back(std::move(work));
  }

  void work() {
    for (Work& work : work_) {
      if (work.placed && work.ends <= now_) release(work);
    }
    std::erase_if(work_, [&](const Work& work) { return work.placed && work.ends <= now_; });
    for (auto& [id, machine] : machines_) {
      if (!machine.node.is_none() || machine.joins > now_) continue;
      const NodeType& type = *config_.type(machine.record.type);
      machine.node = add_node(type.resources.to_map(), type.labels_of(id, machine.record.capacity));
      machine.joined = now_;
    }
    for (const bool groups : {true, false}) {
      for (Work& work : work_) {
        if (work.placed || work.is_group != groups) continue;
        if (groups) {
          auto nodes = scheduler_.place_group(work.group);
          if (!nodes.ok()) continue;
          work.nodes = nodes->nodes;
        } else {
          auto node = scheduler_.place_actor(work.actor);
          if (!node.ok()) continue;
          work.nodes = {node->node};
        }
        work.placed = true;
        work.ends = now_ + work.takes;
        for (NodeId node : work.nodes) last_placed_[node] = ++placements_;
      }
    }
  }

  runtime::Demand demand() {
    runtime::Demand demand;
    for (const Work& work : work_) {
      if (work.placed) continue;
      if (work.is_group)
        demand.groups.push_back({work.group, 1});
      else
        demand.actors.push_back({work.actor.resources, work.actor.labels, 1, "actor A"});
    }
    for (const auto& [id, info] : infos_) {
      runtime::NodeUse use;
      use.info = info;
      use.info.available = scheduler_.available(id);
      use.info.is_head = id == head_;
      use.actors = busy(id);
      use.last_placed = last_placed_[id];
      demand.nodes.push_back(use);
    }
    return demand;
  }

  std::size_t busy(NodeId node) const {
    return static_cast<std::size_t>(
        std::count_if(work_.begin(), work_.end(), [&](const Work& work) {
          return work.placed &&
                 std::find(work.nodes.begin(), work.nodes.end(), node) != work.nodes.end();
        }));
  }

  void later(std::size_t seconds_max, std::function<void()> happen) {
    later_.push_back({now_ + std::chrono::seconds(pick(seconds_max + 1)),
                      [this, life = life_, happen = std::move(happen)] {
                        if (life == life_) happen();
                      }});
  }

  void answer() {
    std::vector<Later> due;
    for (Later& entry : later_) {
      if (entry.at <= now_) due.push_back(std::move(entry));
    }
    std::erase_if(later_, [&](const Later& entry) { return entry.at <= now_; });
    for (Later& entry : due) entry.happen();
  }

  void act(const PlanActions& actions) {
    recorded_ = planner_->records();  // first
    add(actions.add);
    retire(actions.retire);
    remove(actions.remove);
  }

  void add(const std::vector<NodeRecord>& records) {
    for (const NodeRecord& record : records) {
      if (record.capacity == Capacity::kSpot && goes_wrong(0.3)) {
        later(3, [this, id = record.id] {
          planner_->added(id, runtime::resource_exhausted("no spot"), now_);
        });
        continue;
      }
      const bool fails = goes_wrong(0.15);
      const bool half = fails && chance(0.5);  // it fails, and yet a machine is there
      if (!fails || half) {
        const bool never = goes_wrong(0.1);
        // Asking again for one that is there makes no other.
        machines_.try_emplace(record.id,
                              Machine{record,
                                      never ? runtime::Deadline::max()
                                            : now_ + std::chrono::seconds(pick(faults_ ? 90 : 15)),
                                      {},
                                      false,
                                      {}});
      }
      later(5, [this, id = record.id, fails] {
        planner_->added(id, fails ? runtime::task_failed("exit code 1") : Status(), now_);
      });
    }
  }

  void retire(const std::vector<NodeRecord>& records) {
    for (const NodeRecord& record : records) {
      auto machine = machines_.find(record.id);
      Status outcome;
      const bool is_there = machine != machines_.end() && infos_.contains(machine->second.node);
      if (!is_there)
        outcome = runtime::not_found("gone");
      else if (busy(machine->second.node) > 0)
        outcome = runtime::resource_exhausted("busy");
      else if (goes_wrong(0.1))
        outcome = runtime::unavailable("the head is away");
      const bool unheard = outcome.ok() && goes_wrong(0.1);  // done, and the answer lost
      if (outcome.ok() && !machine->second.retired) {
        machine->second.retired = true;
        const NodeId node = machine->second.node;
        scheduler_.begin_drain(node);
        infos_.at(node).drain.emplace();
        if (!goes_wrong(0.1))
          later_.push_back(
              {now_ + std::chrono::seconds(pick(4)), [this, node] { end_node(node); }});
      }
      later(2, [this, id = record.id, outcome = unheard ? runtime::unavailable("lost") : outcome] {
        planner_->retired(id, outcome, now_);
      });
    }
  }

  void remove(const std::vector<NodeRecord>& records) {
    for (const NodeRecord& record : records) {
      const bool fails = goes_wrong(0.3);
      auto machine = machines_.find(record.id);
      if (!fails && machine != machines_.end()) {
        if (!machine->second.node.is_none()) {
          // One that joined after it was given up, or after its addition had failed, may have got
          // work since.
          const bool was_wanted = !record.node.is_none();
          if (was_wanted) {
            EXPECT_EQ(busy(machine->second.node), 0u)
                << record.id << " was removed while it was busy: " << record.reason;
          }
          end_node(machine->second.node);
        }
        machines_.erase(machine);
      }
      later(5, [this, id = record.id, fails] {
        planner_->removed(id, fails ? runtime::unavailable("the provider is away") : Status(),
                          now_);
      });
    }
  }

  void list() {
    std::vector<std::string> ids;
    for (const auto& [id, machine] : machines_) ids.push_back(id);
    later(2, [this, ids, asked = now_] { planner_->listed(ids, asked, now_); });
  }

  void check() {
    ASSERT_LE(nodes(), config_.max_nodes + (others_ - 1))
        << explain();  // others may push it over: they are not the planner's
    for (const NodeType& type : config_.types) {
      const auto count = static_cast<std::size_t>(
          std::count_if(machines_.begin(), machines_.end(),
                        [&](const auto& entry) { return entry.second.record.type == type.name; }));
      ASSERT_LE(count, type.max_nodes) << explain();
    }
  }

  std::mt19937 random_;
  AutoscalerConfig config_;
  ClusterScheduler scheduler_;
  runtime::Deadline now_ = runtime::Deadline() + 1000h;
  std::unique_ptr<NodePlanner> planner_;
  std::vector<NodeRecord> recorded_;
  std::map<std::string, Machine> machines_;
  std::map<NodeId, runtime::NodeInfo> infos_;
  std::map<NodeId, std::uint64_t> last_placed_;
  std::vector<Work> work_;
  std::vector<Later> later_;
  NodeId head_;
  std::size_t others_ = 0;
  std::uint64_t placements_ = 0;
  int ids_ = 0;
  int life_ = 0;
  bool faults_ = false;
};

TEST(PlannerRandom, KeepsItsPromisesAndSettles) {
  const char* more = std::getenv("PLANNER_SEEDS");
  const unsigned seeds = more ? static_cast<unsigned>(std::atoi(more)) : 15;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    world.run(400, true, true);
    for (int i = 0; i < 20 && world.works(); ++i)
      world.run(100, false, false);  // what waits is done, one after the other
    EXPECT_FALSE(world.works()) << world.explain();
    world.run(200, false, false);
    const std::size_t after = world.machines();
    world.run(300, false, false);
    EXPECT_EQ(world.machines(), after) << "it goes up and down without need\n" << world.explain();
    std::size_t least = 0;
    for (const NodeType& type : world.config().types) least += type.min_nodes;
    EXPECT_LE(world.nodes(),
              std::max(world.config().min_nodes, least + world.nodes() - world.machines()))
        << world.explain();
    EXPECT_GE(world.nodes(), std::min(world.config().min_nodes, world.config().max_nodes))
        << world.explain();
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace placement
