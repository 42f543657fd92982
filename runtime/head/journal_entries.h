// The entries of the head's journal, as values: one for each thing that ClusterTables knows, and
// their form in bytes (schema/journal.capnp).
#pragma once

#include <string>
#include <variant>

#include "runtime/control/membership.h"
#include "runtime/control/object_control.h"
#include "runtime/control/token_state.h"
#include "runtime/core/result.h"
#include "runtime/head/journal.h"
#include "runtime/head/request_table.h"

namespace runtime {

namespace journal {

struct Token {
  TokenState state;
  bool operator==(const Token&) const = default;
};
struct Counters {
  std::uint64_t incarnation = 0;
  std::uint64_t nodes_version = 0;
  std::uint64_t order = 0;  // of the last end
  bool operator==(const Counters&) const = default;
};
struct Node {
  NodeInfo info;
  bool operator==(const Node&) const = default;
};
struct Job {
  JobInfo info;
  DriverInfo driver;
  std::uint64_t ended_as = 0;  // 0: it runs
  bool operator==(const Job&) const = default;
};
struct ActorSpecOf {
  JobId job;
  ActorSpec spec;  // without its saved state
  bool operator==(const ActorSpecOf&) const = default;
};
struct ActorRow {
  ActorId actor;
  ActorPhase phase = ActorPhase::kPending;
  NodeId node;
  std::uint64_t incarnation = 0;
  std::uint32_t restarts = 0;
  bool ending = false;
  std::uint64_t version = 0;
  ActorAddress address;
  DeathCause death;
  std::uint64_t died_as = 0;  // 0: it lives
  std::vector<std::uint32_t> gpus = {};
  bool moving = false;
  std::uint32_t moves = 0;
  bool operator==(const ActorRow&) const = default;
};
struct ActorSaved {
  ActorId actor;
  std::string state;
  bool operator==(const ActorSaved&) const = default;
};
struct Group {
  GroupState state;
  bool operator==(const Group&) const = default;
};
struct Pair {
  JobId job;
  std::string key;
  std::string value;
  bool operator==(const Pair&) const = default;
};
struct PublishedEntry {
  std::string name_space;
  std::string name;
  std::uint64_t version = 0;
  PublishedValue value;
  std::string type;
  std::string loss;
  bool operator==(const PublishedEntry&) const = default;
};
struct Departure {
  NodeDeparture departure;
  bool operator==(const Departure&) const = default;
};
struct Request {
  RequestRecord record;
  bool operator==(const Request&) const = default;
};

using Entry = std::variant<Token, Counters, Node, Job, ActorSpecOf, ActorRow, ActorSaved, Group,
                           Pair, PublishedEntry, Departure, Request>;

// The keys: in their order an actor's specification comes before the rest of it.
std::string key_of_token();
std::string key_of_counters();
std::string key_of(NodeId node);
std::string key_of(JobId job);
std::string key_of_spec(ActorId actor);
std::string key_of_row(ActorId actor);
std::string key_of_saved(ActorId actor);
std::string key_of(GroupId group);
std::string key_of_pair(JobId job, const std::string& key);
std::string key_of_published(const std::string& name_space, const std::string& name,
                             std::uint64_t version);

std::string key_of_departure(NodeId node);
std::string key_of_request(std::size_t slot);

std::string encode(const Entry& entry);
/// Errors: kInvalidArgument, naming what is malformed, or that a newer version wrote it.
Result<Entry> decode(const std::string& bytes);

}  // namespace journal

}  // namespace runtime
