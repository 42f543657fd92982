#include "rl/rollout/scheduler.h"

#include <algorithm>
#include <span>

#include "runtime/core/check.h"

namespace rl {
namespace {

bool before(const Sequence* a, const Sequence* b) {
  return a->rank != b->rank ? a->rank < b->rank : a->order < b->order;
}

template <class Line>
void insert_in_order(Line& line, Sequence* sequence) {
  line.insert(std::upper_bound(line.begin(), line.end(), sequence, before), sequence);
}

std::int64_t bytes_of(const std::vector<float>& values) {
  return static_cast<std::int64_t>(values.size() * sizeof(float));
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
  swapped_bytes_ -= bytes_of(sequence.swapped);
  sequence.swapped = {};
  sequence.computed = 0;
  sequence.place = {};
}

// Where nothing is computed: what the prefix cache has of it. The last token is always computed,
// for its logits.
void Scheduler::attach(Sequence& sequence) {
  if (prefixes_ == nullptr || sequence.computed > 0 || !sequence.blocks.empty()) return;
  const std::size_t wanted = sequence.reads_prompt_rows ? 0 : sequence.tokens.size() - 1;
  PrefixCache::Match match =
      prefixes_->match(sequence.stretch, std::span(sequence.tokens).first(wanted));
  sequence.blocks = std::move(match.blocks);
  sequence.computed = match.tokens;
  sequence.place = match.place;
}

// Whether a sequence of this step reads full blocks of this one's beginning that the prefix cache
// does not have yet. It will soon, and a later step takes them from there. The other one makes
// progress in every step that this one waits, so that it never waits for nothing.
bool Scheduler::awaits_prefix(Sequence& sequence) {
  if (prefixes_ == nullptr || sequence.reads_prompt_rows || sequence.computed > 0 ||
      !sequence.blocks.empty() || !sequence.swapped.empty())
    return false;
  const std::int64_t size = cache_.block_tokens();
  const std::span wanted = std::span(sequence.tokens).first(sequence.tokens.size() - 1);
  std::int64_t coming = 0;
  for (const ScheduledTokens& part : step_) {
    const Sequence& other = *part.sequence;
    if (other.stretch != sequence.stretch || !prefixes_->takes(other.place)) continue;
    const auto common =
        std::mismatch(wanted.begin(), wanted.end(), other.tokens.begin(), other.tokens.end())
            .first -
        wanted.begin();
    const std::int64_t in_blocks = common / size * size;
    if (in_blocks > other.computed) coming = std::max(coming, in_blocks);
  }
  if (coming == 0) return false;
  attach(sequence);
  const std::int64_t there = sequence.computed;
  drop_blocks(sequence);
  return coming - there >= size;
}

// Blocks for `count` more tokens. The block to be written first may be shared: then it becomes a
// separate copy. All or nothing.
bool Scheduler::reserve(Sequence& sequence, std::int64_t count) {
  const std::int64_t size = cache_.block_tokens();
  const auto have = static_cast<std::int64_t>(sequence.blocks.size());
  const std::int64_t want = (sequence.computed + count + size - 1) / size;
  const std::int64_t first = sequence.computed / size;
  const bool copy = first < have && cache_.shared(sequence.blocks[static_cast<std::size_t>(first)]);
  const std::int64_t missing = want - have + (copy ? 1 : 0) - cache_.free_blocks();
  if (missing > 0) {
    if (prefixes_ == nullptr || prefixes_->idle() < missing) return false;
    prefixes_->evict(missing);
  }
  if (copy) {
    std::int32_t& block = sequence.blocks[static_cast<std::size_t>(first)];
    const std::int32_t own = *cache_.allocate();
    cache_.copy(block, own, sequence.computed % size);
    cache_.release(block);
    block = own;
  }
  while (static_cast<std::int64_t>(sequence.blocks.size()) < want)
    sequence.blocks.push_back(*cache_.allocate());
  if (sequence.swapped.empty()) return true;
  const std::int64_t floats = cache_.block_stride();
  const auto saved = static_cast<std::int64_t>(sequence.swapped.size()) / floats;
  for (std::int64_t i = 0; i < saved; ++i)
    cache_.load(sequence.blocks[static_cast<std::size_t>(i)], sequence.swapped.data() + i * floats);
  swapped_bytes_ -= bytes_of(sequence.swapped);
  sequence.swapped = {};
  return true;
}

// Waiting sequences that still hold a shared prompt give way first, then the last that runs, then a
// beam that waits for others.
Sequence* Scheduler::victim_for(const Sequence& sequence) {
  for (auto it = waiting_.rbegin(); it != waiting_.rend(); ++it) {
    if (*it != &sequence && !(*it)->blocks.empty()) return *it;
  }
  for (auto it = running_.rbegin(); it != running_.rend(); ++it) {
    if (*it == &sequence) continue;
    if ((*it)->held ? !(*it)->blocks.empty() : before(&sequence, *it)) return *it;
  }
  return nullptr;
}

bool Scheduler::swap_out(Sequence& sequence) {
  const std::int64_t size = cache_.block_tokens();
  const std::int64_t blocks = (sequence.computed + size - 1) / size;
  const std::int64_t bytes = blocks * cache_.block_bytes();
  if (options_.preemption != Preemption::kSwap || blocks == 0 || !sequence.swapped.empty() ||
      swapped_bytes_ + bytes > options_.swap_bytes_max)
    return false;
  const std::int64_t floats = cache_.block_stride();
  sequence.swapped.resize(static_cast<std::size_t>(blocks * floats));
  for (std::int64_t i = 0; i < blocks; ++i)
    cache_.save(sequence.blocks[static_cast<std::size_t>(i)], sequence.swapped.data() + i * floats);
  for (std::int32_t block : sequence.blocks) cache_.release(block);
  sequence.blocks.clear();
  sequence.place = {.node = nullptr, .blocks = 0, .epoch = sequence.place.epoch};
  swapped_bytes_ += bytes;
  ++swaps_;
  return true;
}

void Scheduler::preempt(Sequence& victim) {
  ++preemptions_;
  const auto part = std::find_if(step_.begin(), step_.end(), [&](const ScheduledTokens& scheduled) {
    return scheduled.sequence == &victim;
  });
  if (part != step_.end()) {
    budget_ += part->count;
    step_.erase(part);
  }
  if (victim.held || !swap_out(victim))
    drop_blocks(victim);  // what comes of a held beam begins with its blocks, or with nothing
  if (!victim.held && std::erase(running_, &victim) > 0) insert_in_order(waiting_, &victim);
}

bool Scheduler::reserve_or_preempt(Sequence& sequence, std::int64_t count) {
  while (!reserve(sequence, count)) {
    Sequence* victim = victim_for(sequence);
    if (victim == nullptr) return false;
    preempt(*victim);
  }
  return true;
}

// Preemption only shortens the tail of running_.
void Scheduler::schedule_running(bool decoding) {
  for (std::size_t i = 0; i < running_.size() && budget_ > 0; ++i) {
    Sequence* sequence = running_[i];
    if (sequence->held || static_cast<std::int64_t>(step_.size()) >= options_.sequences_max)
      continue;
    attach(*sequence);
    if ((sequence->pending() == 1) != decoding) continue;
    const std::int64_t count = std::min(sequence->pending(), budget_);
    if (!reserve_or_preempt(*sequence, count)) continue;
    step_.push_back({sequence, count});
    budget_ -= count;
  }
}

std::int64_t Scheduler::active() const {
  return std::count_if(running_.begin(), running_.end(),
                       [](const Sequence* sequence) { return !sequence->held; });
}

bool Scheduler::make_place(const Sequence& sequence) {
  while (active() >= options_.sequences_max) {
    if (!options_.urgent_first || running_.back()->held || running_.back()->rank <= sequence.rank)
      return false;
    preempt(*running_.back());
  }
  return true;
}

// Not before all that is known of it fits, or it would be preempted half-way.
bool Scheduler::admit(Sequence& sequence) {
  if (!make_place(sequence)) return false;
  const bool nothing = sequence.blocks.empty() && sequence.swapped.empty();
  attach(sequence);
  const std::int64_t found = nothing ? sequence.computed : 0;
  bool reserved = reserve(sequence, sequence.pending());
  while (!reserved && options_.urgent_first && !running_.empty() && !running_.back()->held &&
         running_.back()->rank > sequence.rank) {
    preempt(*running_.back());
    reserved = reserve(sequence, sequence.pending());
  }
  if (!reserved && active() == 0) reserved = reserve_or_preempt(sequence, sequence.pending());
  if (!reserved) {
    if (nothing) drop_blocks(sequence);
    return false;
  }
  if (sequence.completion != nullptr && sequence.request != nullptr) {
    const std::int64_t of_prompt = std::min(found, sequence.prompt_tokens());
    if (sequence.generated() == 0) sequence.completion->cached_prompt_tokens = of_prompt;
  }
  matched_tokens_ += found;
  return true;
}

std::vector<ScheduledTokens> Scheduler::schedule() {
  step_.clear();
  budget_ = options_.step_tokens_max;
  // Sequences that decode come before prompts, so that a long prompt delays no one.
  schedule_running(true);
  schedule_running(false);
  std::int64_t later = 0;
  for (std::size_t next = 0; next < waiting_.size() && budget_ > 0;) {
    Sequence* sequence = waiting_[next];
    if (later > 0 && active() + later >= options_.sequences_max) break;  // their places are kept
    if (awaits_prefix(*sequence)) {
      ++later;
      ++next;
      continue;
    }
    if (!admit(*sequence)) break;
    CHECK(waiting_[next] == sequence);  // what it made wait comes after it
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(next));
    insert_in_order(running_, sequence);
    const std::int64_t count = std::min(sequence->pending(), budget_);
    step_.push_back({sequence, count});
    budget_ -= count;
  }
  CHECK(!step_.empty() || idle());
  return std::move(step_);
}

}  // namespace rl
