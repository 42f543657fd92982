#include "rl/tokenizer/merges.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <utility>

#include "rl/tokenizer/unicode_text.h"

namespace rl {

using runtime::Result;

namespace {

constexpr std::uint32_t kNoRank = UINT32_MAX;
constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::size_t kShortSymbolsMax = 64;

// Scans all ranks for the lowest each time; the arrays stay in registers and the first cache lines.
void merge_short(const MergeTable& merges, std::vector<std::int32_t>& symbols,
                 std::vector<std::uint32_t>* lengths) {
  std::uint32_t ranks[kShortSymbolsMax];  // of merging symbol i with the next
  std::int32_t ids[kShortSymbolsMax];     // and what that gives
  std::size_t pairs = symbols.size() - 1;
  const auto look_up = [&](std::size_t i) {
    const Merge* merge = merges.find(symbols[i], symbols[i + 1]);
    ranks[i] = merge != nullptr ? merge->rank : kNoRank;
    ids[i] = merge != nullptr ? merge->id : -1;
  };
  for (std::size_t i = 0; i < pairs; ++i) look_up(i);
  while (pairs > 0) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < pairs; ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] == kNoRank) break;
    symbols[best] = ids[best];
    if (lengths != nullptr) {
      (*lengths)[best] += (*lengths)[best + 1];
      lengths->erase(lengths->begin() + static_cast<std::ptrdiff_t>(best + 1));
    }
    for (std::size_t i = best + 1; i < pairs; ++i) {
      symbols[i] = symbols[i + 1];
      ranks[i - 1] = ranks[i];
      ids[i - 1] = ids[i];
    }
    --pairs;
    if (best > 0) look_up(best - 1);
    if (best < pairs) look_up(best);
  }
  symbols.resize(pairs + 1);
}

// The lowest rank on top, of equal ranks the leftmost.
bool later(const MergeScratch::Candidate& a, const MergeScratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

// A heap of candidate merges over a linked list of symbols. Candidates whose symbols have changed
// meanwhile are dropped when they come up. A removed symbol is -1.
void merge_long(const MergeTable& merges, std::vector<std::int32_t>& symbols, MergeScratch& scratch,
                std::vector<std::uint32_t>* lengths) {
  const auto count = static_cast<std::uint32_t>(symbols.size());
  scratch.heap.clear();
  scratch.previous.resize(count);
  scratch.next.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    scratch.previous[i] = i == 0 ? kNone : i - 1;
    scratch.next[i] = i + 1 == count ? kNone : i + 1;
  }
  const auto offer = [&](std::uint32_t position, bool heapify) {
    const std::uint32_t right = scratch.next[position];
    if (right == kNone) return;
    const Merge* merge = merges.find(symbols[position], symbols[right]);
    if (merge == nullptr) return;
    scratch.heap.push_back({merge->rank, position, merge->id});
    if (heapify) std::push_heap(scratch.heap.begin(), scratch.heap.end(), later);
  };
  for (std::uint32_t i = 0; i < count; ++i) offer(i, false);
  std::make_heap(scratch.heap.begin(), scratch.heap.end(), later);
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), later);
    const MergeScratch::Candidate candidate = scratch.heap.back();
    scratch.heap.pop_back();
    const std::uint32_t left = candidate.position;
    const std::uint32_t right = symbols[left] < 0 ? kNone : scratch.next[left];
    if (right == kNone) continue;
    const Merge* current = merges.find(symbols[left], symbols[right]);
    if (current == nullptr || current->rank != candidate.rank || current->id != candidate.id)
      continue;
    symbols[left] = candidate.id;
    symbols[right] = -1;
    if (lengths != nullptr) (*lengths)[left] += std::exchange((*lengths)[right], 0);
    scratch.next[left] = scratch.next[right];
    if (scratch.next[left] != kNone) scratch.previous[scratch.next[left]] = left;
    offer(left, true);
    if (scratch.previous[left] != kNone) offer(scratch.previous[left], true);
  }
  if (lengths != nullptr) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      if (symbols[i] >= 0) (*lengths)[kept++] = (*lengths)[i];
    }
    lengths->resize(kept);
  }
  std::erase(symbols, -1);
}

std::string spell(const std::pair<std::string_view, std::string_view>& merge) {
  return "(\"" + std::string(merge.first) + "\", \"" + std::string(merge.second) + "\")";
}

}  // namespace

MergeTable::MergeTable(std::size_t count_max)
    : slots_(std::bit_ceil(count_max * 2 + 1)), mask_(slots_.size() - 1) {}

void MergeTable::insert(std::int32_t left, std::int32_t right, Merge merge) {
  const std::uint64_t key = pair_key(left, right);
  std::size_t at = slot_of(key);
  while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & mask_;
  slots_[at] = {key, merge};
}

Result<MergeTable> make_merges(
    const Vocabulary& vocabulary,
    std::span<const std::pair<std::string_view, std::string_view>> merges,
    std::string_view continuing_prefix) {
  MergeTable table(merges.size());
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    auto left_id = vocabulary.find(left);
    auto right_id = vocabulary.find(right);
    if (!left_id || !right_id) {
      return runtime::invalid_argument("merge " + std::to_string(rank) + " " + spell(merges[rank]) +
                                       " uses \"" + std::string(left_id ? right : left) +
                                       "\", which is not in the vocabulary");
    }
    joined = left;
    joined += right.starts_with(continuing_prefix) ? right.substr(continuing_prefix.size()) : right;
    auto id = vocabulary.find(joined);
    if (!id) {
      return runtime::invalid_argument("merge " + std::to_string(rank) + " " + spell(merges[rank]) +
                                       " gives \"" + joined + "\", which is not in the vocabulary");
    }
    table.insert(*left_id, *right_id, {static_cast<std::uint32_t>(rank), *id});
  }
  return table;
}

MergeTable make_merges_from_scores(const Vocabulary& vocabulary, std::span<const double> scores,
                                   const std::vector<bool>& mergeable) {
  struct Pair {
    std::int32_t left;
    std::int32_t right;
    std::int32_t id;
  };
  constexpr std::size_t kTokenBytesMax =
      512;  // longer tokens would make the splits below quadratic in a hostile file
  std::vector<Pair> pairs;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view token = vocabulary.token(id);
    if (!mergeable[static_cast<std::size_t>(id)] || token.empty() || token.size() > kTokenBytesMax)
      continue;
    for (std::size_t cut = utf8_length(token[0]); cut < token.size();
         cut += utf8_length(token[cut])) {
      auto left = vocabulary.find(token.substr(0, cut));
      if (!left) continue;
      auto right = vocabulary.find(token.substr(cut));
      if (right) pairs.push_back({*left, *right, id});
    }
  }
  // Equal scores get equal ranks, so that the leftmost of them merges first.
  std::map<double, std::uint32_t, std::greater<>> ranks;
  for (const Pair& pair : pairs) ranks.emplace(scores[static_cast<std::size_t>(pair.id)], 0);
  std::uint32_t next_rank = 0;
  for (auto& [score, rank] : ranks) rank = next_rank++;
  MergeTable table(pairs.size());
  for (const Pair& pair : pairs)
    table.insert(pair.left, pair.right,
                 {ranks[scores[static_cast<std::size_t>(pair.id)]], pair.id});
  return table;
}

void apply_merges(const MergeTable& merges, std::vector<std::int32_t>& symbols,
                  MergeScratch& scratch, std::vector<std::uint32_t>* lengths) {
  if (symbols.size() < 2) return;
  if (symbols.size() <= kShortSymbolsMax) {
    merge_short(merges, symbols, lengths);
  } else {
    merge_long(merges, symbols, scratch, lengths);
  }
}

}  // namespace rl
