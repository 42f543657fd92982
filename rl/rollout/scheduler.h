// Decides which tokens of which sequences the next step computes, and gives them cache blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "rl/rollout/kv_cache.h"
#include "rl/rollout/sequence.h"

namespace rl {

/// Tokens [sequence->computed, sequence->computed + count) of one sequence.
struct ScheduledTokens {
  Sequence* sequence = nullptr;
  std::int64_t count = 0;
};

struct SchedulerOptions {
  std::int64_t sequences_max = 64;
  std::int64_t step_tokens_max = 512;
};

/// First come, first served; older sequences keep their blocks when younger ones must give theirs back.
/// Borrows the cache and the sequences.
class Scheduler {
 public:
  Scheduler(KvCache& cache, const SchedulerOptions& options) : cache_(cache), options_(options) {}

  /// Puts a sequence in line by its order. It may hold blocks already (shared with the sample it comes from).
  void add(Sequence* sequence);

  /// The next step. Every sequence in it has blocks of its own to write to. Empty exactly when no sequence is left, provided that
  /// the longest sequence alone fits the cache.
  std::vector<ScheduledTokens> schedule();

  /// Takes a sequence out, whatever its state, and frees its blocks.
  void remove(Sequence* sequence);

  bool idle() const { return running_.empty() && waiting_.empty(); }
  std::int64_t preemptions() const { return preemptions_; }

 private:
  bool reserve(Sequence& sequence, std::int64_t count);
  bool reserve_or_preempt(Sequence& sequence, std::int64_t count);
  Sequence* victim_for(const Sequence& sequence);
  void drop_blocks(Sequence& sequence);

  KvCache& cache_;
  SchedulerOptions options_;
  std::vector<Sequence*> running_;  // by order
  std::deque<Sequence*> waiting_;   // by order
  std::int64_t preemptions_ = 0;
};

}  // namespace rl
