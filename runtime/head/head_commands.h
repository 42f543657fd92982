// Commands: all that can change what the head knows.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "runtime/control/membership.h"
#include "runtime/control/scheduler.h"
#include "runtime/control/token_state.h"
#include "runtime/head/published_table.h"

namespace runtime {

namespace command {

struct AddNode {
  NodeInfo info;
};
struct RemoveNode {
  NodeId node;
  std::string why;  // its copies of published objects are gone
};
/// It is about to leave.
struct NodeDrains {
  NodeId node;
  NodeDrain drain;  // its version is filled in
};
/// The cluster has another token.
struct TokenChanged {
  TokenState state;
};
/// A job begins, or (a job that runs already) gets its driver.
struct StartJob {
  JobInfo info;
  DriverInfo driver;
};
/// Its actors die one by one as their processes end; its key-value pairs go at once, or with the
/// last actor that outlives it.
struct EndJob {
  JobId job;
  JobOutcome outcome = JobOutcome::kFailed;
  DeathCause cause = {};
  std::uint64_t ended_ms = 0;
};
/// A driver of it has ended, but not the program that was submitted: its key-value pairs go.
struct ReleaseJob {
  JobId job;
};
struct AddActor {
  JobId job;
  ActorSpec spec;
};
struct ActorWaits {
  ActorId actor;
  std::string reason;
};
struct ActorPlaced {
  ActorId actor;
  ActorPlace place;
  std::uint64_t incarnation;
};
struct ActorAlive {
  ActorAddress address;
};
/// It is to end and not to come back.
struct ActorEnds {
  ActorId actor;
};
/// It goes on without its resources.
struct ActorParked {
  ActorId actor;
};
/// It is to end because its node is drained, and starts elsewhere: that counts for no restart.
struct ActorMoves {
  ActorId actor;
};
/// Its process ended; it waits for a place again.
struct ActorRestarts {
  ActorId actor;
  DeathCause cause;
};
/// What the next incarnation is to begin with.
struct ActorStateSaved {
  ActorId actor;
  std::string state;
};
struct ActorDead {
  ActorId actor;
  DeathCause cause;
};
/// Forgets the dead actors that died first.
struct ForgetDead {
  std::size_t count;
};
struct PutKey {
  JobId job;
  std::string key;
  std::string value;
};
struct DeleteKey {
  JobId job;
  std::string key;
};
struct AddGroup {
  JobId job;
  GroupSpec spec;
};
struct GroupWaits {
  GroupId group;
  std::string reason;
};
struct GroupPlaced {
  GroupId group;
  GroupPlace place;
};
/// It has lost a node: none of its bundles has a place any more.
struct GroupTorn {
  GroupId group;
  std::string reason;
};
struct RemoveGroup {
  GroupId group;
};
struct Publish {
  PublishedTable::Name name;
  std::uint64_t version;
  PublishedValue value;
  std::string type;
};
struct Unpublish {
  PublishedTable::Name name;
  std::uint64_t version;
};

/// Another node keeps it instead of one that is about to leave.
struct MoveCopy {
  PublishedTable::Name name;
  std::uint64_t version;
  NodeId from;
  ObjectLocation to;
};

/// A request that must not run twice has begun, and is answered later.
struct RequestBegun {
  RequestId id;
  std::uint64_t at_ms;
  std::uint64_t about;  // the incarnation that it is about; 0: none
};
struct RequestAnswered {
  RequestId id;
  std::uint64_t at_ms;
  std::string reply;  // encoded
};

}  // namespace command

using HeadCommand = std::variant<
    command::AddNode, command::RemoveNode, command::StartJob, command::EndJob, command::ReleaseJob,
    command::AddActor, command::ActorWaits, command::ActorPlaced, command::ActorAlive,
    command::ActorEnds, command::ActorParked, command::ActorRestarts, command::ActorStateSaved,
    command::ActorDead, command::ForgetDead, command::PutKey, command::DeleteKey, command::AddGroup,
    command::GroupWaits, command::GroupPlaced, command::RemoveGroup, command::Publish,
    command::Unpublish, command::GroupTorn, command::NodeDrains, command::TokenChanged,
    command::ActorMoves, command::MoveCopy, command::RequestBegun, command::RequestAnswered>;

}  // namespace runtime
