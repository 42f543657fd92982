// The values that drivers, workers, nodes and the head exchange about the cluster: specifications,
// placements and states. All are plain values; runtime/control/control_codec.h encodes them for the
// wire (schema/membership.capnp).
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

/// The placement of an actor outside of groups. kDefault: packs until a node is half used, then
/// takes the node with most resources left. kPack: the fullest node with room. kSpread: the node
/// with the fewest actors of its class.
enum class ActorScheduling : std::uint16_t { kDefault = 0, kPack = 1, kSpread = 2 };

/// A bundle of a placement group: its reserved resources are for an actor.
struct BundleSlot {
  GroupId group;
  std::uint32_t index = 0;
  bool operator==(const BundleSlot&) const = default;
};

/// A file that a worker needs: where the driver has it, and a hash of its content.
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
  // Workers started in advance on the driver's node, so that the first actors need no exec.
  std::uint32_t warm_workers = 0;
  // Of the job's named actors; empty: a namespace that no other job uses.
  std::string name_space;
  bool operator==(const DriverInfo&) const = default;
};

/// The limit of an actor's encoded saved state. Put larger data in a file or an object, and its
/// name in the state.
inline constexpr std::size_t kActorStateBytesMax = 1 << 20;

/// What an actor is and what it needs. Size: a field of the wire message each.
struct ActorSpec {
  ActorId actor;               // chosen by the creator, so that a repeated request is recognised
  std::string class_name;      // as registered by the program
  std::string name;            // empty: anonymous. Unique among the living actors of its namespace
  std::string name_space;      // empty in a request: the job's
  bool get_if_exists = false;  // return a living actor of that name and class
  ResourceMap resources;       // reserved for the actor's life; inside a bundle: out of the bundle
  Environment env;             // added to the worker's environment before it starts
  // Compute threads (OMP_NUM_THREADS, MKL_NUM_THREADS); 0: the requested CPUs, at least 1.
  std::uint32_t threads = 0;
  std::optional<BundleSlot> bundle;
  std::optional<NodeId> node;  // run there or nowhere
  // Selectors that the node's labels must meet (placement/resource/label_selector.h).
  Labels labels;
  std::string constructor_args;   // encoded by the caller; opaque here
  bool detached = false;          // no owner: lives until it is killed
  bool outlives_job = false;      // set by the head: detached, or owned by a detached one
  std::int32_t max_restarts = 0;  // after its process ended; below zero: without limit
  std::chrono::milliseconds create_timeout = std::chrono::minutes(5);  // for each start
  ActorId owner;  // the actor that created it and whose end ends it; none: the driver
  std::uint64_t owner_incarnation = 0;
  std::string log_prefix;  // before lines of its output; empty: its class
  // What its callers need to know (runtime/call/caller_options.h); opaque here.
  std::string caller_options;
  // For a restart: what save_state() returned last; opaque here.
  std::optional<std::string> saved_state;
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
  // Grows with each start of the actor; never accept an older one again.
  std::uint64_t incarnation = 0;
  std::int32_t pid = 0;
  std::string caller_options;  // of its ActorSpec
  bool shared = false;         // the process runs other shared actors too
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
  std::vector<std::uint32_t> gpus = {};  // the GPUs of its node, by number, that it has
  // Restarts because its node was drained; included in `restarts`, not in max_restarts.
  std::uint32_t moves = 0;

  /// Whether its process has ended and no new one runs yet.
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
  // Label selectors of each bundle, as ActorSpec::labels; may be shorter, or empty.
  std::vector<Labels> bundle_labels = {};
  std::string name_space = {};  // of the name; empty in a request: the job's
  bool detached = false;        // outlives its job, until it is removed; needs a name and a
                                // namespace that other jobs can name
  bool operator==(const GroupSpec&) const = default;
};

struct GroupState {
  GroupSpec spec;
  JobId job;
  bool placed = false;
  std::string pending_reason;
  std::vector<NodeId> nodes;  // one per bundle once placed
  // For each bundle: the node's GPUs, by number, that are reserved for it.
  std::vector<std::vector<std::uint32_t>> gpus = {};
  std::uint32_t placements = 0;  // how often it was placed: more than once when it has lost a node

  /// Whether it was placed, and must be placed again.
  bool is_torn() const { return !placed && placements > 0; }
  bool operator==(const GroupState&) const = default;
};

/// The coming departure of a node.
struct NodeDrain {
  std::string reason;                     // as given by the requester: "preemption"
  std::chrono::milliseconds left{0};      // until it leaves at the latest, when this was sent
  std::chrono::milliseconds deadline{0};  // the same since the Unix epoch, by the head's clock
  std::uint64_t version = 0;              // of the cluster's nodes when it began
  std::string waits_for = {};  // what keeps the node: "2 actors (Counter 7f3a: ...), 1 job"
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

/// A node that has left the cluster.
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
