// JobClient: submitted jobs: their files, their queue, their output, their end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/control/node_client.h"

namespace runtime {

struct JobRequest {
  std::vector<std::string> argv;
  std::string working_dir;  // on the node; empty: its own folder
  Environment env;
  bool detached = false;         // it outlives this connection and reports nothing here
  std::vector<JobFile> files{};  // in the node's cache already (offer_files)
  JobFile program{};
  JobId job{};  // one that has been queued, and has its place on this node; none: a new one
  GroupId place{};
};

/// Over a connection to a node, which outlives it.
class JobClient {
 public:
  template <class T>
  using Callback = NodeClient::Callback<T>;
  using Done = NodeClient::Done;

  explicit JobClient(NodeClient& node) : node_(node) {}

  /// Has a job wait for what it reserves; it is over if this connection ends before it was
  /// submitted. The placement group's bundle then says to which node. Errors: kDeadlineExceeded
  /// (names what is missing), kCancelled (the job was stopped).
  void queue(control::QueueJob request, Deadline deadline, Callback<GroupState> done);
  /// Runs a program on the node with this cluster's address in its environment. The job ends with
  /// this connection.
  void submit(JobRequest request, NodeClient::JobHandlers handlers, Deadline deadline,
              Callback<JobId> done);
  /// Asks a job to end, wherever it runs; answers before it has.
  void cancel(JobId job, Deadline deadline, Done done);
  /// With the tail of its output. kNotFound: there is none (any more).
  void query(JobId job, Deadline deadline, Callback<JobInfo> done);
  /// Which files the node lacks, by their place in `hashes`. kResourceExhausted: they are too much
  /// for it.
  void offer_files(std::uint64_t bytes, std::uint64_t count, std::vector<std::string> hashes,
                   Deadline deadline, Callback<std::vector<std::uint32_t>> done);
  /// A part of a file, in order.
  void store_file(std::string hash, std::uint64_t bytes, std::uint64_t offset, std::string data,
                  Deadline deadline, Done done);

 private:
  NodeClient& node_;
};

}  // namespace runtime
