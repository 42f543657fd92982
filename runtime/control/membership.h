// The values that drivers, workers, nodes and the head exchange about the cluster: what is asked,
// what is placed, what lives. All are plain values; runtime/control/control_codec.h puts them on
// the wire (schema/membership.capnp).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/control/jobs.h"
#include "runtime/core/environment.h"
#include "runtime/core/ids.h"
#include "runtime/core/resource_map.h"
#include "runtime/core/status.h"
#include "runtime/process/death_cause.h"
#include "runtime/process/log_lines.h"

namespace runtime {

/// Where an actor outside of groups is put. kDefault: together until a node is half used, then
/// where most is left. kPack: on the fullest node that takes it. kSpread: on the node with the
/// fewest actors of its class.
enum class ActorScheduling : std::uint16_t { kDefault = 0, kPack = 1, kSpread = 2 };

/// A slot of a placement group, to run an actor in what that bundle has reserved.
struct BundleSlot {
  GroupId group;
  std::uint32_t index = 0;
  bool operator==(const BundleSlot&) const = default;
};

/// A file that a worker needs, named by where the driver has it and by what is in it.
struct FileSpec {
  std::string path;
  std::uint64_t bytes = 0;
  std::string hash;  // XXH3-128 in hex
  bool operator==(const FileSpec&) const = default;
};

/// The program whose workers run a job's actors.
struct DriverInfo {
  FileSpec executable;
  std::vector<FileSpec> libraries;  // the ones that are not part of the system
  std::vector<std::string> argv;    // argv[0] first; workers start with argv[0] only
  std::string working_dir;          // workers start there where the folder exists
  std::int32_t pid = 0;
  std::uint32_t warm_workers =
      0;  // started ahead on the driver's node, so that the first actors need no exec
  std::string
      name_space;  // of the job's named actors; empty: the job's own, which no other job shares
  bool operator==(const DriverInfo&) const = default;
};

/// Of an actor's saved state, as it is encoded. What is larger belongs in a file or an object, and
/// its name in the state.
inline constexpr std::size_t kActorStateBytesMax = 1 << 20;

/// What an actor is and what it needs.
struct ActorSpec {
  ActorId actor;               // chosen by the creator, so that a repeated request is recognised
  std::string class_name;      // as registered by the program
  std::string name;            // empty: anonymous. Unique among the living actors of its namespace
  std::string name_space;      // empty in a request: the job's
  bool get_if_exists = false;  // a living actor of that name and class is the answer
  ResourceMap resources;       // reserved for the actor's life; inside a bundle: out of the bundle
  Environment env;             // added to the worker's environment before it starts
  std::uint32_t threads =
      0;  // compute threads (OMP_NUM_THREADS, MKL_NUM_THREADS); 0: the CPUs asked for, at least 1
  std::optional<BundleSlot> bundle;
  std::optional<NodeId> node;  // run there or nowhere
  Labels
      labels;  // selectors that the node's labels must meet (placement/resource/label_selector.h)
  std::string constructor_args;   // encoded by the caller; opaque here
  bool detached = false;          // no owner: lives until it is killed
  bool outlives_job = false;      // the head fills it in: detached, or owned by one that is
  std::int32_t max_restarts = 0;  // after its process ended; below zero: without limit
  std::chrono::milliseconds create_timeout = std::chrono::minutes(5);  // for each start
  ActorId owner;  // the actor that asked for it, whose end ends it; none: the job's driver
  std::uint64_t owner_incarnation = 0;
  std::string log_prefix;  // before lines of its output; empty: its class
  std::string
      caller_options;  // what its callers need to know (runtime/call/caller_options.h); opaque here
  std::optional<std::string>
      saved_state;                 // for a restart: what save_state() returned last; opaque here
  bool shared = false;             // in a worker process with other shared actors of its job
  bool node_is_preferred = false;  // another node will do when `node` has no room or is gone
  ActorScheduling scheduling = ActorScheduling::kDefault;
  bool operator==(const ActorSpec&) const = default;
};

/// Where an actor is reached.
struct ActorAddress {
  ActorId actor;
  WorkerId worker;
  NodeId node;
  std::string class_name;
  std::string unix_path;     // the worker's own socket, for callers on the same machine and node
  std::string node_address;  // HOST:PORT of its node, for all others
  std::uint64_t incarnation =
      0;  // grows each time the actor is started; never accept an older one again
  std::int32_t pid = 0;
  std::string caller_options;  // of its ActorSpec
  bool shared = false;         // other shared actors are in that process
  bool operator==(const ActorAddress&) const = default;
};

enum class ActorPhase : std::uint16_t { kPending = 0, kStarting = 1, kAlive = 2, kDead = 3 };
std::string_view to_string(ActorPhase phase);  // "pending", "starting", "alive", "dead"

struct ActorState {
  ActorId actor;
  JobId job;
  NodeId node;
  WorkerId worker;
  std::string class_name;
  std::string name;
  ActorPhase phase = ActorPhase::kPending;
  std::string pending_reason;  // why it is not placed yet
  std::int32_t pid = 0;
  ResourceMap resources;
  DeathCause death;  // of the last incarnation that ended
  std::uint32_t restarts = 0;
  std::uint64_t incarnation = 0;
  std::string name_space;
  bool detached = false;
  std::uint64_t version = 0;             // grows with every change of the phase
  std::vector<std::uint32_t> gpus = {};  // of its node, by number, that it was given
  std::uint32_t moves =
      0;  // of the restarts those because its node was drained, which max_restarts does not count

  /// Its process ended and it has none yet again.
  bool is_restarting() const {
    return restarts > 0 && (phase == ActorPhase::kPending || phase == ActorPhase::kStarting);
  }
  bool operator==(const ActorState&) const = default;
};

/// The error a caller of a dead (or restarting) actor gets: kActorDied "actor Counter 7f3a (pid 12
/// on node 33aa) died: killed by SIGKILL".
Status death_status(const ActorState& state);

enum class GroupStrategy : std::uint16_t {
  kPack = 0,
  kSpread = 1,
  kStrictPack = 2,
  kStrictSpread = 3
};

std::string_view to_string(
    GroupStrategy strategy);  // "PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"

/// Bundles are reserved all or nothing.
struct GroupSpec {
  GroupId group;
  std::string name;
  GroupStrategy strategy = GroupStrategy::kPack;
  std::vector<ResourceMap> bundles;
  std::vector<Labels> bundle_labels =
      {};  // of each bundle: selectors, as ActorSpec::labels; may be shorter, or empty
  std::string name_space = {};  // of the name; empty in a request: the job's
  bool detached = false;  // lives on when its job has ended, until it is removed; needs a name and
                          // a namespace that others can say
  bool operator==(const GroupSpec&) const = default;
};

struct GroupState {
  GroupSpec spec;
  JobId job;
  bool placed = false;
  std::string pending_reason;
  std::vector<NodeId> nodes;  // one per bundle once placed
  std::vector<std::vector<std::uint32_t>> gpus =
      {};  // one list per bundle: the node's GPUs, by number, that are the bundle's
  std::uint32_t placements = 0;  // how often it was placed: more than once when it has lost a node

  /// It was placed, and has to be again.
  bool is_torn() const { return !placed && placements > 0; }
  bool operator==(const GroupState&) const = default;
};

/// That a node is about to leave.
struct NodeDrain {
  std::string reason;                     // as whoever asked for it gave it: "preemption"
  std::chrono::milliseconds left{0};      // until it leaves at the latest, when this was said
  std::chrono::milliseconds deadline{0};  // the same since the Unix epoch, by the head's clock
  std::uint64_t version = 0;              // of the cluster's nodes when it began
  std::string waits_for;  // what keeps the node: "2 actors (Counter 7f3a: ...), 1 job"
  bool operator==(const NodeDrain&) const = default;
};

struct NodeInfo {
  NodeId node;
  std::string address;  // HOST:PORT
  std::string hostname;
  std::int32_t pid = 0;
  bool is_head = false;
  ResourceMap resources;
  ResourceMap available;
  Labels labels;
  bool alive = true;
  std::uint64_t joined_as = 0;     // the version of the cluster's nodes with which it joined
  std::optional<NodeDrain> drain;  // while it is about to leave
  bool operator==(const NodeInfo&) const = default;
};

/// A node that is in the cluster no more.
struct NodeDeparture {
  NodeInfo node;              // as it was
  std::string why;            // "node 33aa (10.0.0.2:7000) was drained (preemption) and has left"
  bool drained = false;       // it had been told to leave; else it was lost
  std::uint64_t version = 0;  // of the cluster's nodes when it went
  bool operator==(const NodeDeparture&) const = default;
};

/// What `starling status` shows.
struct ClusterState {
  ClusterId cluster;
  std::vector<NodeInfo> nodes;
  std::vector<ActorState> actors;
  std::vector<GroupState> groups;
  std::vector<JobInfo> jobs;
  bool operator==(const ClusterState&) const = default;
};

}  // namespace runtime
