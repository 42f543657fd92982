// The control plane's messages as plain values, one struct per request. control_codec.h puts them
// on the wire.
#pragma once

#include <chrono>
#include <variant>

#include "runtime/control/demand.h"
#include "runtime/control/membership.h"
#include "runtime/control/object_control.h"
#include "runtime/control/observe.h"
#include "runtime/control/token_state.h"
#include "runtime/core/result.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

namespace control {

struct ActorInstance {
  ActorId actor;
  std::uint64_t incarnation = 0;
  auto operator<=>(const ActorInstance&) const = default;
};

struct Heartbeat {
  bool operator==(const Heartbeat&) const = default;
};

// From drivers, workers and the command line; the node answers or passes on to the head.

struct RegisterDriver {
  DriverInfo info;
  bool operator==(const RegisterDriver&) const = default;
};
struct CreateActor {
  ActorSpec spec;
  bool operator==(const CreateActor&) const = default;
};
/// By id, or by name when the id is none. Waits for an actor that is being created.
struct ResolveActor {
  ActorId actor;
  std::string name;
  std::string name_space;  // empty: the job's
  bool operator==(const ResolveActor&) const = default;
};
/// Waits up to a second until the end of that incarnation is known; incarnation 0 means the present
/// one.
struct QueryActor {
  ActorId actor;
  std::uint64_t incarnation = 0;
  bool operator==(const QueryActor&) const = default;
};
struct KillActor {
  ActorId actor;
  bool may_restart = false;  // as after a crash
  bool operator==(const KillActor&) const = default;
};
struct KvPut {
  std::string key;
  std::string value;
  bool operator==(const KvPut&) const = default;
};
struct KvGet {
  std::string key;
  bool wait = false;
  bool operator==(const KvGet&) const = default;
};
struct KvAdd {
  std::string key;
  std::int64_t amount = 0;
  bool operator==(const KvAdd&) const = default;
};
struct KvDelete {
  std::string key;
  bool operator==(const KvDelete&) const = default;
};
struct QueryCluster {
  bool operator==(const QueryCluster&) const = default;
};
struct CreateGroup {
  GroupSpec spec;
  bool operator==(const CreateGroup&) const = default;
};
struct RemoveGroup {
  GroupId group;
  bool operator==(const RemoveGroup&) const = default;
};
/// Queues a job that reserves resources, as a placement group of one bundle, before it is
/// submitted. Answered with that group once it is placed; the job is then submitted to the node of
/// the group. The job is dropped if the connection ends before that.
struct QueueJob {
  // The submitter chooses the ids, so that it can ask what the group waits for.
  JobId job;
  GroupId place;
  std::vector<std::string> argv;
  ResourceMap resources;
  Labels labels = {};  // selectors, as ActorSpec::labels
  bool operator==(const QueueJob&) const = default;
};
struct SubmitJob {
  std::vector<std::string> argv;
  std::string working_dir;  // on the node; empty: a folder of the job's own, with these files in it
  Environment env;
  bool detached = false;  // its output is not forwarded, and it outlives its submitter
  std::vector<JobFile> files = {};
  // argv[0], sent in addition to `files`; its path is only a name. Empty path: none.
  JobFile program = {};
  JobId job = {};  // a queued one that was placed on this node; none: a new one
  GroupId place = {};
  bool operator==(const SubmitJob&) const = default;
};
/// To any node; the node of the job's driver ends the job.
struct CancelJob {
  JobId job;
  bool operator==(const CancelJob&) const = default;
};
struct ReadLog {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t file = 0;  // LogChunk::file of the last answer; 0: begin with the oldest
  bool operator==(const ReadLog&) const = default;
};
struct StopNode {
  bool operator==(const StopNode&) const = default;
};

// From a node to the head.

/// A node joins, or returns to a head that was restarted or over a new connection. Answered with
/// a number: whether another head could take over the cluster if this one is lost. kCancelled:
/// the node was declared dead meanwhile. It must end everything that it runs, and join as a new
/// node.
struct RegisterNode {
  NodeInfo info;
  bool returns = false;
  // An earlier node of the same machine that is known to be dead; none: there is none.
  NodeId replaces = {};
  // Actors that run or start here, or whose ends the head has not confirmed.
  std::vector<ActorInstance> actors = {};
  std::vector<JobId> jobs = {};  // whose drivers run here
  bool operator==(const RegisterNode&) const = default;
};
/// Sent again once the job's process runs, and once its driver has registered.
struct StartJob {
  JobInfo info;
  DriverInfo driver;
  bool operator==(const StartJob&) const = default;
};
/// To the head: the job has ended. To the nodes: end the job's workers.
struct EndJob {
  JobId job;
  JobOutcome outcome = JobOutcome::kFailed;
  DeathCause cause = {};
  std::uint64_t ended_ms = 0;
  // To the head: a driver of the job has ended, but not the program that was submitted.
  bool goes_on = false;
  // From the head: actors that outlive the job may restart, and need its files.
  bool files_needed = false;
  bool operator==(const EndJob&) const = default;
};
struct ActorExited {
  ActorId actor;
  std::uint64_t incarnation = 0;
  DeathCause cause;
  bool operator==(const ActorExited&) const = default;
};
/// The process of several shared actors ended.
struct ActorsExited {
  std::vector<ActorInstance> actors;
  DeathCause cause;  // of all of them
  bool operator==(const ActorsExited&) const = default;
};

// From the head to a node.

struct StartActor {
  ActorSpec spec;
  std::uint64_t incarnation = 0;
  DriverInfo driver;
  std::string driver_node;               // HOST:PORT: has the driver's files
  std::vector<std::uint32_t> gpus = {};  // the node's GPUs, by number, that the actor gets
  bool operator==(const StartActor&) const = default;
};
struct StopActor {
  ActorId actor;
  std::uint64_t incarnation = 0;
  std::chrono::milliseconds grace{0};  // time until it is killed
  bool drain = false;                  // let it serve its queued calls within that time
  std::string reason = "killed on request";
  bool operator==(const StopActor&) const = default;
};

// From a node to a worker.

struct BuildActor {
  ActorSpec spec;
  std::uint64_t incarnation = 0;
  bool operator==(const BuildActor&) const = default;
};

// From a node to the driver's node.

struct FetchFile {
  std::string hash;
  std::uint64_t offset = 0;
  bool operator==(const FetchFile&) const = default;
};

// From the command line, for the head.

/// Replaces the token that callers must prove; the present one stays valid for `grace`. Answered
/// once the change is recorded; idempotent. Errors: kInvalidArgument, kUnavailable (another change
/// is in progress; the head's local node is not connected).
struct ChangeToken {
  std::string token;
  std::chrono::milliseconds grace{0};
  bool operator==(const ChangeToken&) const = default;
};

// From the head to its local node.

/// The token that may become the next one: a restart of the cluster needs to know it, whether or
/// not the change was recorded.
struct ExpectToken {
  std::string token;
  bool operator==(const ExpectToken&) const = default;
};

// From drivers and workers, for the head.

/// Ends an actor once it has served its queued calls; kills it at the request's deadline. Answered
/// when it is gone.
struct TerminateActor {
  ActorId actor;
  bool restart = false;  // start it again, with the state that it saved at its end
  bool operator==(const TerminateActor&) const = default;
};
/// Answered with the actor's state as soon as its version differs from this one.
struct WatchActor {
  ActorId actor;
  std::uint64_t version = 0;
  bool operator==(const WatchActor&) const = default;
};
/// Answered with the cluster's nodes as soon as their version differs from this one.
struct WatchNodes {
  std::uint64_t version = 0;
  bool operator==(const WatchNodes&) const = default;
};
/// Saves the state that the actor's next incarnation restores. Refused from any incarnation but the
/// present one.
struct SaveState {
  ActorId actor;
  std::uint64_t incarnation = 0;
  std::string state;
  bool operator==(const SaveState&) const = default;
};
/// The actor keeps running, and gives its reserved resources back for good.
struct ParkActor {
  ActorId actor;
  bool operator==(const ParkActor&) const = default;
};

// From drivers and workers to the head, from there to the actor's node, and to the process that
// builds the actor.

/// Calls wait for the actor's constructor. The actor is found by id, else by name. Answered at
/// once; dropped if no process is constructing the actor.
struct ConstructorAwaited {
  static constexpr std::size_t kNoticeBytesMax = 256 << 10;

  ActorId actor;
  std::string name = {};
  std::string name_space = {};  // empty: the job's
  std::string notice = {};      // a CallNotice, opaque to nodes and head
  bool operator==(const ConstructorAwaited&) const = default;
};

// From an autoscaler, for the head.

/// Answered with a Demand.
struct QueryDemand {
  bool operator==(const QueryDemand&) const = default;
};

// From a node to a worker.

/// Serve the queued calls, then destroy and end the actor.
struct DrainActor {
  ActorId actor;
  std::uint64_t incarnation = 0;
  bool operator==(const DrainActor&) const = default;
};

/// By id, or by name when the id is none. With `wait`: answered once it is placed.
struct QueryGroup {
  GroupId group;
  std::string name;
  std::string name_space;  // empty: the job's
  bool wait = false;
  bool operator==(const QueryGroup&) const = default;
};

// Nodes that are about to leave: from drivers and the command line, and from the node itself, to
// the head.

/// Answered once the drain is recorded. The node gets no new work, its work moves away, and it
/// leaves when it is empty or after `time`. If it is draining already, the earlier deadline counts.
/// Errors: kNotFound, kInvalidArgument (the head's local node; no time), kResourceExhausted
/// (`if_idle` and the node is not idle: the message names what runs there).
struct DrainNode {
  NodeId node;
  std::chrono::milliseconds time{0};
  std::string reason;
  bool if_idle = false;  // only if no work would have to move or end
  bool operator==(const DrainNode&) const = default;
};

// From the head to a node.

/// The resources of one node that the bundles of a placement group reserve, in total.
struct Holding {
  GroupId group;
  ResourceMap resources;
  bool operator==(const Holding&) const = default;
};
/// The two phases of reservations, for many groups at once; the members apply in their order.
/// Prepared but uncommitted reservations are dropped when the connection to the head ends. Answered
/// with Refusals.
struct Reserve {
  bool reset = false;  // drop all reservations first: the members are complete
  std::vector<GroupId> release;
  std::vector<Holding> prepare;
  std::vector<GroupId> commit;
  bool empty() const { return !reset && release.empty() && prepare.empty() && commit.empty(); }
  bool operator==(const Reserve&) const = default;
};

// From the command line, about jobs.

/// Answered with a JobInfo that has the tail of the output.
struct QueryJob {
  JobId job;
  bool operator==(const QueryJob&) const = default;
};
/// Sent before a folder is uploaded. Answered with the files that are not in the node's cache.
/// kResourceExhausted: the folder is too large.
struct OfferFiles {
  std::uint64_t bytes = 0;  // of all files
  std::uint64_t count = 0;
  std::vector<std::string> hashes = {};
  bool operator==(const OfferFiles&) const = default;
};
/// A part of a file, for the node's cache; parts come in order.
struct StoreFile {
  std::string hash;
  std::uint64_t bytes = 0;  // of the whole file
  std::uint64_t offset = 0;
  std::string data;
  bool operator==(const StoreFile&) const = default;
};

// From a driver: its main function has returned this.
struct DriverDone {
  std::int32_t exit_code = 0;
  bool operator==(const DriverDone&) const = default;
};
/// The node's processes copy the objects of the other node that they refer to. Answered with the
/// number of objects that could not be copied.
struct TakeOver {
  NodeId node;
  bool operator==(const TakeOver&) const = default;
};
/// The node was drained: it ends what still runs, and leaves.
struct Leave {
  std::string reason;
  bool operator==(const Leave&) const = default;
};

// Answers and events.

/// A group that could not be prepared, since the node lacks the room or the time. All others are
/// prepared.
struct Refusal {
  GroupId group;
  std::string reason;
  bool operator==(const Refusal&) const = default;
};
struct Refusals {
  std::vector<Refusal> refused;
  bool operator==(const Refusals&) const = default;
};
/// The wanted files, as indices into OfferFiles::hashes.
struct FilesWanted {
  std::vector<std::uint32_t> places;
  bool operator==(const FilesWanted&) const = default;
};

struct NodeList {
  std::uint64_t version = 0;
  std::vector<NodeInfo> nodes;
  std::vector<NodeDeparture> departed = {};  // the last ones, oldest first
  bool operator==(const NodeList&) const = default;
};

struct LogChunk {
  std::string text;
  std::uint64_t next_offset = 0;
  std::uint64_t file = 0;      // which file of the log, which is rotated
  std::uint64_t position = 0;  // of the text's first byte in everything ever written to the log,
                               // deleted files included; 0: not known
  bool operator==(const LogChunk&) const = default;
};
struct JobOutput {
  JobId job;
  bool is_stderr = false;
  std::string bytes;
  bool operator==(const JobOutput&) const = default;
};
struct JobExited {
  JobId job;
  DeathCause cause;
  bool operator==(const JobExited&) const = default;
};
/// These actors will not be restarted.
struct ActorsDied {
  JobId job;
  std::vector<ActorId> actors;
  bool operator==(const ActorsDied&) const = default;
};
struct Shutdown {
  Status reason;
  // What should have ended with the cluster but could not be ended, as text; empty: nothing.
  std::string left = {};
  bool operator==(const Shutdown&) const = default;
};
/// Sent to all nodes, and by each node to its processes.
struct NodeDrains {
  NodeId node;
  NodeDrain drain;
  bool operator==(const NodeDrains&) const = default;
};
/// Sent like NodeDrains: the tokens that are valid from now on.
struct TokenChanged {
  TokenState state;
  bool operator==(const TokenChanged&) const = default;
};

}  // namespace control

struct ControlRequest {
  using Body = std::variant<
      control::Heartbeat, control::RegisterDriver, control::CreateActor, control::ResolveActor,
      control::QueryActor, control::KillActor, control::KvPut, control::KvGet, control::KvAdd,
      control::KvDelete, control::QueryCluster, control::CreateGroup, control::RemoveGroup,
      control::SubmitJob, control::CancelJob, control::ReadLog, control::StopNode,
      control::RegisterNode, control::StartJob, control::EndJob, control::ActorExited,
      control::StartActor, control::StopActor, control::BuildActor, control::FetchFile,
      control::TerminateActor, control::WatchActor, control::WatchNodes, control::SaveState,
      control::DrainActor, control::ActorsExited, control::ParkActor, ObjectControl,
      control::QueryGroup, control::Reserve, control::QueryJob, control::OfferFiles,
      control::StoreFile, control::DriverDone, control::DrainNode, control::TakeOver,
      control::Leave, control::QueryDemand, ObserveControl, control::QueueJob, control::ChangeToken,
      control::ExpectToken, control::ConstructorAwaited>;
  JobId job;                          // on whose behalf
  std::chrono::milliseconds timeout;  // time left
  Body body;
  RequestId id = {};  // the same on each repetition (request_ids.h)
  bool operator==(const ControlRequest&) const = default;
};

/// The answer to a request. std::string: bytes; std::int64_t: a number or a Boolean.
using ControlAnswer = std::variant<std::monostate, JobId, ActorAddress, ActorState, std::string,
                                   std::int64_t, ClusterState, GroupState, control::LogChunk,
                                   control::NodeList, ObjectControlAnswer, control::Refusals,
                                   JobInfo, control::FilesWanted, Demand, ObserveAnswer>;

/// Answers one request, exactly once.
using ControlAnswerer = UniqueFunction<void(Result<ControlAnswer>)>;

using ControlEvent =
    std::variant<LogLines, control::JobOutput, control::JobExited, control::ActorsDied,
                 control::Shutdown, control::NodeDrains, control::TokenChanged>;

}  // namespace runtime
