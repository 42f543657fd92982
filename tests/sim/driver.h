// A simulated driver: a program that makes actors and calls them, by the dice, through the public
// interface.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors.h"
#include "gangs.h"
#include "keys.h"
#include "ledger.h"
#include "runtime/call/object_state.h"
#include "world.h"

namespace sim {

/// Where drivers meet at the end, so that references can be counted while everything is still
/// there.
struct Rendezvous {
  std::set<int> arrived;     // drivers whose work is done, by number
  bool all_arrived = false;  // and none of them calls anything any more: what actors keep now,
                             // no other one replaces
  std::set<int> dropped;     // drivers that have told their actors to let go of everything
  bool dropped_all = true;   // every actor has confirmed that it holds nothing, or is dead
  bool all_removed = true;   // every placement group, as far as their drivers were told
  bool heard_all = true;     // every actor has answered, or is dead
  int looker = -1;           // the driver that is asked to list all objects of the cluster
  bool looked = false;
  runtime::Result<runtime::ObjectList> objects = runtime::unavailable("not looked at yet");
  runtime::Result<runtime::ClusterState> cluster = runtime::unavailable("not looked at yet");
  bool released = false;
};

struct DriverPlan {
  int number = 0;
  std::string address;  // of the node it talks to
  int actors = 1;
  int operations = 20;
  bool objects = false;
  bool many_objects = false;  // most of what it does
  bool gangs = false;         // placement groups
  bool calm = false;          // does nothing that makes calls fail
};

class Driver {
 public:
  Driver(World& world, Ledger& ledger, Rendezvous& rendezvous, DriverPlan plan)
      : world_(world),
        ledger_(ledger),
        rendezvous_(rendezvous),
        plan_(std::move(plan)),
        gangs_(world, plan_.calm),
        keys_(world, plan_.number) {}

  /// The program's main.
  void run();
  /// Objects that this driver made and that something still holds, though the driver does not.
  std::size_t objects_held() const;

 private:
  using Handle = runtime::ActorHandle<Witness>;
  using Bytes = std::vector<std::uint8_t>;
  struct Actor {
    Handle handle;
    std::int32_t retries = 0;  // of its handle
  };
  struct Pending {
    std::uint64_t call;
    runtime::ObjectRef<std::uint64_t> result;
  };

  runtime::Status start(runtime::Runtime& rt);
  void spawn(runtime::Runtime& rt);
  void operate(runtime::Runtime& rt);
  void call_some(runtime::Runtime& rt, Actor& actor);
  void run_task(runtime::Runtime& rt);
  void use_objects(runtime::Runtime& rt, Actor& actor);
  void use_gangs(runtime::Runtime& rt);
  void collect(runtime::Runtime& rt, std::size_t left);
  void drop_everything(runtime::Runtime& rt);
  std::chrono::milliseconds some_timeout();
  std::uint64_t issue(const Actor& actor, const char* method, runtime::CallOptions& options,
                      bool ordered = true);
  void own(runtime::ObjectRef<Bytes> object);
  /// Its result is to be looked at when it settles.
  void watch(std::uint64_t call, const runtime::ObjectStatePtr& state);
  void keep(std::uint64_t call, runtime::ObjectRef<std::uint64_t> result);
  bool gone() const { return world_.current()->crashed; }

  World& world_;
  Ledger& ledger_;
  Rendezvous& rendezvous_;
  const DriverPlan plan_;
  Gangs gangs_;
  Keys keys_;
  std::vector<Actor> actors_;
  std::vector<Pending> pending_;
  std::vector<runtime::ObjectRef<Bytes>> objects_;
  std::vector<std::weak_ptr<runtime::ObjectState>> made_;  // all of them
};

}  // namespace sim
