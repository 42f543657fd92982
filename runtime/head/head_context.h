// HeadContext: the tables, links and options that the parts of the head share.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "runtime/control/scheduler.h"
#include "runtime/core/ids.h"
#include "runtime/core/timer.h"
#include "runtime/head/cluster_tables.h"
#include "runtime/head/head_links.h"
#include "runtime/transport/keyring.h"

namespace runtime {

struct HeadOptions {
  std::size_t key_bytes_max = 4 << 10;
  std::size_t value_bytes_max = 1 << 20;
  std::size_t keys_per_job_max = 100'000;
  std::size_t pending_max = 100'000;  // actors and groups that wait for placement
  /// How long a query about an actor waits until the death of the actor is known.
  std::chrono::milliseconds death_wait{1000};
  std::size_t state_bytes_max = kActorStateBytesMax;  // of one actor's saved state
  /// Dead actors are kept for queries: the last `dead_kept` of them always, others, up to
  /// `dead_kept_max`, for as long as callers take to ask.
  std::size_t dead_kept = 1000;
  std::size_t dead_kept_max = 200'000;
  std::chrono::milliseconds dead_kept_for{5'000};
  /// The pause between the end of an actor's process and its next start. There is none after the
  /// first end, then this one. It doubles after every incarnation that lived for less than
  /// `restart_calm`.
  std::chrono::milliseconds restart_delay_first{100};
  std::chrono::milliseconds restart_delay_max{10'000};
  std::chrono::milliseconds restart_calm{60'000};
  /// The journal survives this machine's processes, and another head may continue with it: nodes
  /// that lose this head wait for that.
  bool durable = false;
  /// The tokens that callers must prove to the head; follows changes of the cluster's token.
  Keyring keyring;
  /// How long what an earlier head had accepted waits for its creator to ask again.
  std::chrono::milliseconds restored_wait{60'000};
};

/// A request that is being handled.
struct HeadCall {
  NodeId from;
  JobId job;
  Deadline deadline;
  RequestId id = {};        // none: it may run twice
  bool has_begun = false;   // a repetition: the head knows that it began
  std::uint64_t about = 0;  // what it was about then (RequestLedger::note_begun)
};

/// Outlives the parts. They commit their decisions to the tables and the journal as commands: a
/// command is applied once it is recorded.
struct HeadContext {
  ClusterTables& tables;
  Scheduler& scheduler;
  HeadLinks& links;
  const std::function<Deadline()>& now;
  const HeadOptions& options;

  void commit(const HeadCommand& command) const { tables.apply(command); }
  std::chrono::milliseconds left(const HeadCall& call) const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(call.deadline - now());
  }
  /// `wanted`, or the job's namespace if it is empty.
  std::string name_space(const HeadCall& call, const std::string& wanted) const {
    return wanted.empty() ? tables.jobs().name_space(call.job) : wanted;
  }
};

}  // namespace runtime
