#include "rl/rollout/scheduler.h"

#include <algorithm>

#include "runtime/core/check.h"

namespace rl {
namespace {

bool older(const Sequence* a, const Sequence* b) { return a->order < b->order; }

template <class Line>
void insert_in_order(Line& line, Sequence* sequence) {
  line.insert(std::upper_bound(line.begin(), line.end(), sequence, older), sequence);
}

}  // namespace

void Scheduler::add(Sequence* sequence) { insert_in_order(waiting_, sequence); }

void Scheduler::remove(Sequence* sequence) {
  std::erase(running_, sequence);
  std::erase(waiting_, sequence);
  drop_blocks(*sequence);
}

void Scheduler::drop_blocks(Sequence& sequence) {
  for (std::int32_t block : sequence.blocks) cache_.release(block);
  sequence.blocks.clear();
  sequence.computed = 0;
}

// Blocks for `count` more tokens. The block to be written first may be shared: then it becomes a copy of its own. All or nothing.
bool Scheduler::reserve(Sequence& sequence, std::int64_t count) {
  const std::int64_t size = cache_.block_tokens();
  const auto have = static_cast<std::int64_t>(sequence.blocks.size());
  const std::int64_t want = (sequence.computed + count + size - 1) / size;
  const std::int64_t first = sequence.computed / size;
  const bool copy = first < have && cache_.shared(sequence.blocks[static_cast<std::size_t>(first)]);
  if (cache_.free_blocks() < want - have + (copy ? 1 : 0)) return false;
  if (copy) {
    std::int32_t& block = sequence.blocks[static_cast<std::size_t>(first)];
    const std::int32_t own = *cache_.allocate();
    cache_.copy(block, own, sequence.computed % size);
    cache_.release(block);
    block = own;
  }
  while (static_cast<std::int64_t>(sequence.blocks.size()) < want) sequence.blocks.push_back(*cache_.allocate());
  return true;
}

// Waiting sequences that still hold a shared prompt give way first, then the youngest that runs.
Sequence* Scheduler::victim_for(const Sequence& sequence) {
  for (auto it = waiting_.rbegin(); it != waiting_.rend(); ++it) {
    if (*it != &sequence && !(*it)->blocks.empty()) return *it;
  }
  if (running_.empty() || !older(&sequence, running_.back())) return nullptr;
  return running_.back();
}

bool Scheduler::reserve_or_preempt(Sequence& sequence, std::int64_t count) {
  while (!reserve(sequence, count)) {
    Sequence* victim = victim_for(sequence);
    if (victim == nullptr) return false;
    ++preemptions_;
    drop_blocks(*victim);
    if (std::erase(running_, victim) > 0) insert_in_order(waiting_, victim);
  }
  return true;
}

std::vector<ScheduledTokens> Scheduler::schedule() {
  std::vector<ScheduledTokens> step;
  std::int64_t budget = options_.step_tokens_max;
  // Sequences that decode come before prompts, so that a long prompt delays no one; preemption only shortens the tail of running_.
  for (const bool decoding : {true, false}) {
    for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
      Sequence* sequence = running_[i];
      if ((sequence->pending() == 1) != decoding) continue;
      const std::int64_t count = std::min(sequence->pending(), budget);
      if (!reserve_or_preempt(*sequence, count)) continue;
      step.push_back({sequence, count});
      budget -= count;
    }
  }
  // A preempted sequence may have been in the step already.
  const auto gone = [&](const ScheduledTokens& part) { return part.sequence->blocks.empty(); };
  std::erase_if(step, gone);

  while (!waiting_.empty() && budget > 0 && static_cast<std::int64_t>(running_.size()) < options_.sequences_max) {
    Sequence* sequence = waiting_.front();
    const std::int64_t count = std::min(sequence->pending(), budget);
    // Not before all that is known of it fits, or it would be preempted half-way.
    if (!reserve(*sequence, sequence->pending()) && !(running_.empty() && reserve_or_preempt(*sequence, sequence->pending()))) break;
    waiting_.pop_front();
    insert_in_order(running_, sequence);
    step.push_back({sequence, count});
    budget -= count;
  }
  CHECK(!step.empty() || idle());
  return step;
}

}  // namespace rl
