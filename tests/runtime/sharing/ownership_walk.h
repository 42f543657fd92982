// A random walk over everything that can be done with references, by drivers and actors on two
// nodes. Some of these are killed, and one node as well. A model of who owns what says which reads
// must succeed; at the end no process holds anything, and nothing may be left.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/runtime/sharing/sharing_fixture.h"

namespace runtime::test {

class OwnershipWalk : public SharingTest {
 protected:
  void walk(std::uint64_t seed, int steps) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " (OWNERSHIP_SEED runs it alone)");
    std::printf("[ seed     ] %llu\n", static_cast<unsigned long long>(seed));
    random_.seed(seed);
    if (second_.is_none()) second_ = add_node();
    while (actors_.size() < 4) spawn();
    for (int i = 0; i < steps && !HasFailure(); ++i) step();
    if (!HasFailure()) read_everything();
    mine_.clear();
    in_flight_.clear();
    while (!lenders_.empty()) kill_lender();
    for (auto& member : actors_) get(member.handle.call(&Keeper::drop_all));
    EXPECT_TRUE(eventually([&] { return is_empty(refs()); }, 30s)) << describe(refs());
    // What processes keep for their next objects goes with them.
    for (auto& member : actors_) EXPECT_TRUE(rt_->kill(member.handle).ok());
    actors_.clear();
    EXPECT_TRUE(eventually([&] {
      const ObjectList list = refs();
      return std::all_of(list.stores.begin(), list.stores.end(), [&](const StoreInfo& store) {
        return store.leased_bytes <= (store.node == rt_->cluster().node_id()
                                          ? 2 * (4u << 20)
                                          : 0u);  // the driver's own slabs
      });
    })) << describe(refs());
  }

 private:
  struct Member {
    std::string name;
    NodeId node;
    ActorHandle<Keeper> handle;
  };
  /// Another driver, which has lent one object.
  struct Lender {
    std::string name;
    std::unique_ptr<Command> program;
  };

  std::uint64_t any(std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>(0, below - 1)(random_);
  }
  Member& member() { return actors_[any(actors_.size())]; }
  ActorHandle<Keeper>& actor() { return member().handle; }
  /// In the process itself, in a slab, in its own range.
  std::uint64_t count() {
    constexpr std::uint64_t kCounts[] = {10, 1 << 13, 1 << 15, 1 << 18};
    return kCounts[any(4)];
  }
  void spawn() {
    Member added{
        "keeper " + std::to_string(++names_), any(2) == 0 ? rt_->cluster().node_id() : second_, {}};
    added.handle = keeper(added.node, {.name = added.name});
    actors_.push_back(std::move(added));
  }

  Known put() {
    const std::uint64_t seed = ++seeds_;
    auto ref = rt_->put(numbers(seed, count()));
    EXPECT_TRUE(ref.ok()) << ref.status().to_string();
    return {seed, *ref};
  }

  Parcel parcel() {
    Parcel parcel;
    std::vector<Known> boxed;
    for (const Known& known : mine_) {
      switch (any(5)) {
        case 0: parcel.list.push_back(known); break;
        case 1: parcel.named["n" + std::to_string(known.seed)] = known; break;
        case 2: boxed.push_back(known); break;
        default: break;
      }
    }
    if (!boxed.empty()) {
      auto box = rt_->put(boxed);
      EXPECT_TRUE(box.ok());
      parcel.boxed = *box;
    }
    return parcel;
  }

  void step() {
    switch (any(15)) {
      case 0:
      case 1: mine_.push_back(put()); break;
      case 2: {  // an object that an actor put, its reference as a part of a result
        Member& maker = member();
        const std::uint64_t seed = ++seeds_;
        owners_[seed] = maker.name;
        mine_.push_back(get(maker.handle.call(&Keeper::make, seed, count())));
        break;
      }
      case 3: {  // a result, not waited for
        Member& maker = member();
        const std::uint64_t seed = ++seeds_;
        owners_[seed] = maker.name;
        mine_.push_back({seed, maker.handle.call(&Keeper::produce, seed, count())});
        break;
      }
      case 4:
      case 5: get(actor().call(&Keeper::keep, parcel())); break;
      case 6: in_flight_.push_back(actor().call(&Keeper::keep, parcel())); break;
      case 7: {
        ActorHandle<Keeper>&from = actor(), &to = actor();
        if (from == to) break;
        get(from.call(&Keeper::hand_on, to));
        break;
      }
      case 8: get(actor().call(&Keeper::drop, any(1000))); break;
      case 9:
        if (!mine_.empty())
          mine_.erase(mine_.begin() + static_cast<std::ptrdiff_t>(any(mine_.size())));
        break;
      case 10: {
        ActorHandle<Keeper>& reader = actor();
        check_all(get(reader.call(&Keeper::read_all)));
        break;
      }
      case 11: {  // references that come back
        auto back = get(actor().call(&Keeper::kept));
        for (const Known& known : back) {
          if (mine_.size() < 30) mine_.push_back(known);
        }
        break;
      }
      case 12:
        if (any(3) == 0) kill_actor();
        break;
      case 13:
        if (any(4) == 0) kill_node();
        break;
      case 14:
        if (any(4) > 0) break;
        if (lenders_.size() < 2)
          lend();
        else
          kill_lender();
        break;
    }
  }

  /// Calls under way may end with the process that is killed next, and what they return; those that
  /// went before are there.
  void settle_calls() {
    for (const auto& call : in_flight_) get(call);
    in_flight_.clear();
  }
  /// What it was asked to make is there before it dies.
  void bury(const Member& victim) {
    for (const Known& known : mine_) {
      if (auto owner = owners_.find(known.seed);
          owner != owners_.end() && owner->second == victim.name)
        (void)rt_->wait(std::vector{known.ref}, 1, 30s);
    }
    dead_.insert(victim.name);
  }

  void kill_actor() {
    settle_calls();
    const std::size_t which = any(actors_.size());
    bury(actors_[which]);
    crash(actors_[which].handle);
    actors_.erase(actors_.begin() + static_cast<std::ptrdiff_t>(which));
    spawn();
  }

  void kill_node() {
    settle_calls();
    for (const Member& each : actors_) {
      if (each.node == second_) bury(each);
    }
    nodes_.back()->signal(SIGKILL);
    nodes_.back()->wait();
    const std::size_t before = actors_.size();
    std::erase_if(actors_, [&](const Member& each) {
      if (each.node != second_) return false;
      EXPECT_TRUE(eventually([&] {
        return rt_->get(each.handle.call(&Keeper::pid), 5s).status().code() ==
               ErrorCode::kActorDied;
      }));
      return true;
    });
    second_ = add_node();
    while (actors_.size() < before) spawn();
  }

  void lend() {
    Lender lender{"lender " + std::to_string(++names_), nullptr};
    const std::uint64_t seed = ++seeds_;
    owners_[seed] = lender.name;
    lender.program = program({"--lender", member().name, std::to_string(seed)});
    EXPECT_TRUE(eventually([&] {
      return lender.program->output().find("lent") != std::string::npos;
    })) << lender.program->output();
    lenders_.push_back(std::move(lender));
  }
  void kill_lender() {
    settle_calls();
    dead_.insert(lenders_.front().name);
    lenders_.front().program->signal(SIGKILL);
    lenders_.front().program->wait();
    lenders_.erase(lenders_.begin());
  }

  bool may_be_lost(std::uint64_t seed) const {
    auto owner = owners_.find(seed);
    return owner != owners_.end() && dead_.contains(owner->second);
  }
  void check(std::uint64_t seed, const std::string& failure) const {
    EXPECT_TRUE(may_be_lost(seed)) << seed << ": its owner lives: " << failure;
    EXPECT_NE(failure.find("object "), std::string::npos) << failure;
    const bool died = failure.find("its owner, ") != std::string::npos;
    const bool with_its_node = failure.find("has left the cluster") != std::string::npos;
    EXPECT_TRUE(died || with_its_node) << failure;
  }
  void check_all(const std::vector<std::string>& failures) const {
    for (const std::string& failure : failures) check(std::stoull(failure), failure);
  }
  void read_everything() {
    for (auto& reader : actors_) check_all(get(reader.handle.call(&Keeper::read_all)));
    for (const Known& known : mine_) {
      auto view = rt_->objects().view(known.ref, 30s);
      if (view.ok())
        EXPECT_TRUE(is_from(known.seed, *view)) << known.seed;
      else
        check(known.seed, view.status().to_string());
    }
  }

  std::mt19937_64 random_;
  NodeId second_;
  std::vector<Member> actors_;
  std::vector<Lender> lenders_;
  std::vector<Known> mine_;
  std::vector<ObjectRef<void>> in_flight_;
  std::map<std::uint64_t, std::string> owners_;  // by seed; others are the driver's
  std::set<std::string> dead_;
  std::uint64_t seeds_ = 0, names_ = 0;
};

/// OWNERSHIP_SEED, else another one for each run.
inline std::uint64_t first_seed() {
  const char* given = std::getenv("OWNERSHIP_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

}  // namespace runtime::test
