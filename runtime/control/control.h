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
/// Waits up to a second for the end of that incarnation to be known; of incarnation 0: of the
/// present one.
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
/// A job that reserves something waits for a place, as a placement group of one bundle does, before
/// it is submitted. Answered with that group once it has one: the job is then submitted to its
/// node. It is over if the connection ends before that.
struct QueueJob {
  JobId
      job;  // the ids are chosen by whoever submits, who can ask meanwhile what the group waits for
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
  bool detached = false;  // nobody takes its output, nor does it end with who submitted it
  std::vector<JobFile> files = {};
  JobFile program =
      {};  // unless its path is empty: argv[0], shipped beside the folder; the path is its name
  JobId job = {};  // one that was queued, and has its place on this node; none: a new one
  GroupId place = {};
  bool operator==(const SubmitJob&) const = default;
};
/// To any node; the one where the job's driver runs ends it.
struct CancelJob {
  JobId job;
  bool operator==(const CancelJob&) const = default;
};
struct ReadLog {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t file = 0;  // as the last LogChunk said; 0: begin with the oldest
  bool operator==(const ReadLog&) const = default;
};
struct StopNode {
  bool operator==(const StopNode&) const = default;
};

// From a node to the head.

/// Answered with whether another head may go on with the cluster should this one be lost (a
/// number). A node joins; or one that has joined comes back, to a head that was restarted or over a
/// new connection. Refused with kCancelled when it was declared dead meanwhile: then it has to end
/// what it runs, and join as a new one.
struct RegisterNode {
  NodeInfo info;
  bool returns = false;
  NodeId replaces =
      {};  // an earlier node of the same machine that is known to be dead; none: there is none
  std::vector<ActorInstance> actors =
      {};  // that run here or are being started, or whose ends the head has not confirmed
  std::vector<JobId> jobs = {};  // whose drivers run here
  bool operator==(const RegisterNode&) const = default;
};
/// Also once the job's process runs, and when it has got its driver.
struct StartJob {
  JobInfo info;
  DriverInfo driver;
  bool operator==(const StartJob&) const = default;
};
/// Also from the head to the nodes: end the job's workers.
struct EndJob {
  JobId job;
  JobOutcome outcome = JobOutcome::kFailed;
  DeathCause cause = {};
  std::uint64_t ended_ms = 0;
  bool goes_on =
      false;  // to the head: a driver of it has ended, but not the program that was submitted
  bool files_needed =
      false;  // from the head: what outlives the job may start again, from its files
  bool operator==(const EndJob&) const = default;
};
struct ActorExited {
  ActorId actor;
  std::uint64_t incarnation = 0;
  DeathCause cause;
  bool operator==(const ActorExited&) const = default;
};
/// The process of many shared actors ended.
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
  std::vector<std::uint32_t> gpus = {};  // of the node's, by number, that are the actor's
  bool operator==(const StartActor&) const = default;
};
struct StopActor {
  ActorId actor;
  std::uint64_t incarnation = 0;
  std::chrono::milliseconds grace{0};  // until it is killed
  bool drain = false;                  // within that time it may serve the calls that wait
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

/// Callers prove that token from now on; the present one counts for `grace` still. Answered once it
/// is recorded; a repetition finds it done. Errors: kInvalidArgument, kUnavailable (another change
/// is under way; the node beside the head is away).
struct ChangeToken {
  std::string token;
  std::chrono::milliseconds grace{0};
  bool operator==(const ChangeToken&) const = default;
};

// From the head to the node beside it.

/// The token that may be the next: what starts the cluster again is to know it, whether the change
/// is recorded or not.
struct ExpectToken {
  std::string token;
  bool operator==(const ExpectToken&) const = default;
};

// From drivers and workers, for the head.

/// Ends an actor once it has served the calls that wait; at the request's deadline by force.
/// Answered when it is gone.
struct TerminateActor {
  ActorId actor;
  bool restart = false;  // it is started again then, with the state it saved at its end
  bool operator==(const TerminateActor&) const = default;
};
/// Answered with the actor's state as soon as its version is another than this one.
struct WatchActor {
  ActorId actor;
  std::uint64_t version = 0;
  bool operator==(const WatchActor&) const = default;
};
/// Answered with the cluster's nodes as soon as their version is another than this one.
struct WatchNodes {
  std::uint64_t version = 0;
  bool operator==(const WatchNodes&) const = default;
};
/// What the actor's next incarnation is to begin with. Refused from an incarnation that is not the
/// present one.
struct SaveState {
  ActorId actor;
  std::uint64_t incarnation = 0;
  std::string state;
  bool operator==(const SaveState&) const = default;
};
/// The actor goes on without the resources that it reserved; for good.
struct ParkActor {
  ActorId actor;
  bool operator==(const ParkActor&) const = default;
};

// From drivers and workers to the head, from there to the actor's node, and to the process that
// builds the actor.

/// Calls wait for the actor's constructor. By id; where there is no such actor, by name. Answered
/// at once; dropped where no process builds the actor.
struct ConstructorAwaited {
  static constexpr std::size_t kNoticeBytesMax = 256 << 10;

  ActorId actor;
  std::string name = {};
  std::string name_space = {};  // empty: the job's
  std::string notice = {};      // a CallNotice, opaque to nodes and head
  bool operator==(const ConstructorAwaited&) const = default;
};

// From whoever adds and removes nodes, for the head.

/// Answered with a Demand.
struct QueryDemand {
  bool operator==(const QueryDemand&) const = default;
};

// From a node to a worker.

/// Serve what waits, destroy the actor, end.
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

/// Answered once it is recorded: the node gets nothing new, what it has moves away, and it leaves
/// when it is empty, or after `time`. Of one that is drained already, the earlier end counts.
/// Errors: kNotFound, kInvalidArgument (it is the node beside the head; no time),
/// kResourceExhausted naming what runs there (it is not idle, and was to be).
struct DrainNode {
  NodeId node;
  std::chrono::milliseconds time{0};
  std::string reason;
  bool if_idle = false;  // only if nothing would have to move or end
  bool operator==(const DrainNode&) const = default;
};

// From the head to a node.

/// What a placement group takes of one node, all its bundles there together.
struct Holding {
  GroupId group;
  ResourceMap resources;
  bool operator==(const Holding&) const = default;
};
/// The two phases of a group's reservation, for many groups at once; in the order of the members.
/// What was prepared and not committed when the connection to the head ends is dropped. Answered
/// with Refusals.
struct Reserve {
  bool reset = false;  // drop everything first: the rest is all that there is
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
/// Before a folder is shipped: whether it may be (kResourceExhausted: it is too large), and which
/// of its files are not in the node's cache.
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
/// Its processes are to hold themselves what they refer to of that other node's objects. Answered
/// with how many could not be had.
struct TakeOver {
  NodeId node;
  bool operator==(const TakeOver&) const = default;
};
/// It was drained: it ends what is left and leaves.
struct Leave {
  std::string reason;
  bool operator==(const Leave&) const = default;
};

// Answers and events.

/// Of what was to be prepared, that for which the node has no room, or no time left. The rest is
/// held.
struct Refusal {
  GroupId group;
  std::string reason;
  bool operator==(const Refusal&) const = default;
};
struct Refusals {
  std::vector<Refusal> refused;
  bool operator==(const Refusals&) const = default;
};
/// Which of the hashes that were offered, by their place.
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
  std::uint64_t file = 0;      // which of the files that a log consists of, as they are rotated
  std::uint64_t position = 0;  // of the text's first byte in all that was ever written to the log,
                               // also to files that are gone; 0: not known
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
/// For good.
struct ActorsDied {
  JobId job;
  std::vector<ActorId> actors;
  bool operator==(const ActorsDied&) const = default;
};
struct Shutdown {
  Status reason;
  std::string left =
      {};  // what was to end with the cluster and could not be ended, in words; empty: nothing
  bool operator==(const Shutdown&) const = default;
};
/// To all nodes, and from each to its processes.
struct NodeDrains {
  NodeId node;
  NodeDrain drain;
  bool operator==(const NodeDrains&) const = default;
};
/// The same: what counts from now on.
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

/// What a request was answered with. std::string: bytes; std::int64_t: a number or a truth value.
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
