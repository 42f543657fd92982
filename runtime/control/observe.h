// Requests and replies of people and tools that observe a cluster. runtime/schema/observe.capnp is
// the format.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/control/membership.h"

namespace runtime {

/// Numbers by name.
using Numbers = std::map<std::string, double>;

struct ActorPage {
  std::vector<ActorState> actors;  // in the order of their ids
  ActorId next;                    // ask for what comes after; none: that was all
  bool operator==(const ActorPage&) const = default;
};

/// What the actors of a class on one node have done.
struct ClassLoad {
  std::string name;
  std::uint64_t calls = 0;  // ended, those that failed included
  std::uint64_t failed = 0;
  std::uint64_t sum_ns = 0;
  std::vector<std::uint64_t> buckets;  // by how long they took: kLatencyBounds of
                                       // observe/activity_page.h, and one more for all above
  std::uint64_t waiting = 0;
  std::uint64_t actors = 0;
  bool operator==(const ClassLoad&) const = default;
};

struct ActorLoad {
  ActorId actor;
  std::string class_name;
  std::int32_t pid = 0;
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
  std::uint64_t busy_ns = 0;
  std::uint64_t waiting = 0;
  std::string running;           // a method that runs now
  std::uint64_t running_ns = 0;  // for how long it has run
  bool operator==(const ActorLoad&) const = default;
};

struct NodeLoad {
  NodeId node;
  std::uint64_t at_ns = 0;  // the node's steady clock
  Numbers numbers;          // "memory_used_bytes", ...: node_introspection.cpp names them
  std::vector<ClassLoad> classes;
  std::vector<ActorLoad> actors;
  std::uint64_t actors_left_out = 0;
  bool operator==(const NodeLoad&) const = default;
};

struct WorkerInfo {
  WorkerId worker;
  NodeId node;
  JobId job;
  std::int32_t pid = 0;
  std::string state;  // "idle", "starting", "actor", "shared", "ending"
  ActorId actor;      // of a process for one
  std::string class_name;
  std::uint32_t actors = 0;
  std::uint64_t memory_bytes = 0;  // its own
  double cpu_seconds = 0;
  std::uint32_t threads = 0;
  std::string process;  // what the kernel says: "running", "sleeping", "stopped", ...
  std::chrono::milliseconds age{0};
  bool operator==(const WorkerInfo&) const = default;
};
using WorkerList = std::vector<WorkerInfo>;

struct ThreadStack {
  std::int32_t tid = 0;
  std::string name;
  std::string state;  // as WorkerInfo::process
  std::string
      waits_in;  // the kernel function that it waits in; empty: none, or the kernel does not say
  ActorId actor;
  std::string running;  // the method that it runs; empty: none
  std::uint64_t running_ns = 0;
  std::vector<std::string> frames;  // innermost first; none: it did not answer
  bool operator==(const ThreadStack&) const = default;
};

struct StackReport {
  std::int32_t pid = 0;
  std::string class_name;
  std::string process;
  std::string note;  // what keeps threads from answering, and the cure
  std::vector<ThreadStack> threads;
  bool operator==(const StackReport&) const = default;
};

struct TraceOfProcess {
  std::int32_t pid = 0;
  std::string name;                // "driver", "Counter 7f3a0011"
  std::vector<std::string> names;  // of methods, by the numbers in the events
  std::string events;              // TraceEvent of observe/activity_page.h, 64 bytes each
  std::uint64_t lost = 0;          // overwritten before they were read
  bool operator==(const TraceOfProcess&) const = default;
};

struct TraceChunk {
  std::uint64_t at_ns = 0;  // the node's steady clock
  std::vector<TraceOfProcess> processes;
  bool operator==(const TraceChunk&) const = default;
};

namespace control {

/// Which actors: all of these hold. Keys: id, node and job (first digits are enough), name,
/// namespace, class, state, pid.
struct ListActors {
  static constexpr std::uint32_t kLimitMax = 5'000;
  std::vector<std::pair<std::string, std::string>> filters;
  ActorId after;  // actors whose ids are larger
  std::uint32_t limit = kLimitMax;
  bool operator==(const ListActors&) const = default;
};
/// The head's own numbers.
struct ReadHead {
  bool operator==(const ReadHead&) const = default;
};

// To a node, which answers for itself and its processes.

struct ReadLoad {
  std::uint32_t actors_max = 1'000;
  bool operator==(const ReadLoad&) const = default;
};
struct ListWorkers {
  bool operator==(const ListWorkers&) const = default;
};
struct ReadStack {
  ActorId actor;
  bool operator==(const ReadStack&) const = default;
};
/// As Prometheus reads it.
struct ReadMetrics {
  bool operator==(const ReadMetrics&) const = default;
};
struct Trace {
  static constexpr std::chrono::milliseconds kForMax{600'000};
  std::chrono::milliseconds record{0};  // from now on; zero: says nothing about recording
  bool read = false;                    // answer with what was recorded
  bool operator==(const Trace&) const = default;
};
/// Answered with "steady_ns" and "wall_s".
struct ReadClock {
  bool operator==(const ReadClock&) const = default;
};
/// What keeps the actor's process from being started; answered with a text, empty where nothing
/// does.
struct ReadStart {
  ActorId actor;
  bool operator==(const ReadStart&) const = default;
};
/// Answered with "round_trip_s" and "bytes_per_s", over the other node's one port.
struct MeasurePeer {
  static constexpr std::uint64_t kBytesMax = 1ull << 30;
  std::string address;
  std::uint64_t bytes = 0;
  bool operator==(const MeasurePeer&) const = default;
};
/// Taken and dropped.
struct Sink {
  std::string bytes;
  bool operator==(const Sink&) const = default;
};

}  // namespace control

using ObserveControl =
    std::variant<control::ListActors, control::ReadHead, control::ReadLoad, control::ListWorkers,
                 control::ReadStack, control::ReadMetrics, control::Trace, control::ReadClock,
                 control::MeasurePeer, control::Sink, control::ReadStart>;
using ObserveAnswer =
    std::variant<ActorPage, NodeLoad, WorkerList, StackReport, std::string, TraceChunk, Numbers>;

}  // namespace runtime
