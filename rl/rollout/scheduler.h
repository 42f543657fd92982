// Decides which tokens of which sequences the next step computes, and gives them cache blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "rl/rollout/engine_options.h"
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
  Preemption preemption = Preemption::kRecompute;
  std::int64_t swap_bytes_max = 0;
  bool urgent_first =
      false;  // a waiting sequence of smaller rank takes the place and the blocks of one that runs
};

/// Sequences in the order of their rank, then of their arrival: earlier ones keep their blocks when
/// later ones must give theirs back. Borrows the caches and the sequences.
class Scheduler {
 public:
  /// `prefixes` may be null.
  Scheduler(KvCache& cache, const SchedulerOptions& options, PrefixCache* prefixes = nullptr)
      : cache_(cache), options_(options), prefixes_(prefixes) {}

  /// Puts a sequence in line by its order. It may hold blocks already (shared with the sample it
  /// comes from).
  void add(Sequence* sequence);

  /// The next step. Every sequence in it has its own blocks to write to. Empty exactly when no
  /// sequence is left, provided that the longest sequence alone fits the cache.
  std::vector<ScheduledTokens> schedule();

  /// Takes a sequence out, whatever its state, and frees its blocks.
  void remove(Sequence* sequence);

  /// Gives back all that was computed of a sequence, which stays in line.
  void drop_blocks(Sequence& sequence);

  bool idle() const { return running_.empty() && waiting_.empty(); }
  std::int64_t running() const { return static_cast<std::int64_t>(running_.size()); }
  std::int64_t waiting() const { return static_cast<std::int64_t>(waiting_.size()); }
  std::int64_t preemptions() const { return preemptions_; }
  std::int64_t swaps() const { return swaps_; }
  std::int64_t matched_tokens() const { return matched_tokens_; }

 private:
  void attach(Sequence& sequence);
  bool awaits_prefix(Sequence& sequence);
  bool reserve(Sequence& sequence, std::int64_t count);
  bool reserve_or_preempt(Sequence& sequence, std::int64_t count);
  Sequence* victim_for(const Sequence& sequence);
  void preempt(Sequence& victim);
  bool swap_out(Sequence& sequence);
  void schedule_running(bool decoding);
  bool admit(Sequence& sequence);
  bool make_place(const Sequence& sequence);
  std::int64_t active() const;

  KvCache& cache_;
  SchedulerOptions options_;
  PrefixCache* prefixes_;
  std::vector<Sequence*> running_;  // in order
  std::deque<Sequence*> waiting_;   // in order
  std::vector<ScheduledTokens> step_;
  std::int64_t budget_ = 0;
  std::int64_t swapped_bytes_ = 0;
  std::int64_t preemptions_ = 0;
  std::int64_t swaps_ = 0;
  std::int64_t matched_tokens_ = 0;
};

}  // namespace rl
