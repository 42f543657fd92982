// ArenaPages: memory of an arena that goes back to the system, and comes again, page by page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rl/mesh/range_set.h"
#include "rl/model/page_users.h"
#include "rl/model/pass_memory.h"

namespace rl {

/// Which pages of an arena have memory. An arena begins with all of it. What was given back can be
/// neither read nor written: a process that tries it ends. What is taken again holds anything.
/// Pages that are not the arena's alone always stay. Takes and gives are counted, so that a page of
/// two units stays while one of them is there. When this goes, all of the arena may be used again.
/// Borrows the arena, memory of the process alone on the CPU. One thread at a time.
///
/// Some of what is given back keeps its memory, which moves to the addresses of what is taken next.
/// That costs a hundredth of what pages from the system cost, which it has to clear. It never adds
/// to the most that there is, since a take uses up what was kept first.
class ArenaPages final : public PassMemory {
 public:
  /// `kept_elements`: how many of those that are given back keep their memory until release(), at
  /// most.
  explicit ArenaPages(std::span<float> arena, std::int64_t kept_elements = 0);
  ~ArenaPages() override;
  ArenaPages(const ArenaPages&) = delete;
  ArenaPages& operator=(const ArenaPages&) = delete;

  void take(const RangeSet& elements) override;
  void take_zeros(const RangeSet& elements) override;
  void give_back(const RangeSet& elements) override;
  void release() override;
  std::span<float> host() const override { return arena_; }
  void forget(const ArenaRange& range) override;

  /// Elements that may be used now, whole pages.
  std::int64_t there() const { return pages_there_ * page_elements_; }
  std::int64_t most() const override { return most_ * page_elements_; }
  void reset_most() override { most_ = pages_there_ + kept(); }

 private:
  // The pages among them that come from the system, and are zero.
  std::vector<PageRun> bring(const RangeSet& elements);
  void bring(PageRun absent, std::vector<PageRun>& fresh);
  void use_in_place(PageRun absent, std::vector<PageRun>& gaps);
  bool move(PageRun kept, PageRun absent) const;
  void let_go(PageRun pages);
  void drop(PageRun pages) const;
  void allow(PageRun pages, bool use) const;
  std::int64_t kept() const;  // pages

  PageRun pages_of(const ArenaRange& range) const;
  ArenaRange elements_of(PageRun pages) const;
  std::byte* at(std::size_t page) const { return begin_ + page * page_bytes(); }
  std::size_t page_bytes() const {
    return static_cast<std::size_t>(page_elements_) * sizeof(float);
  }

  std::span<float> arena_;
  std::int64_t page_elements_ = 0;
  std::byte* begin_ = nullptr;  // of the first page that is the arena's alone
  PageUsers users_;
  std::vector<PageRun> spare_;  // given back, with their memory; they do not overlap
  std::int64_t may_keep_ = 0;   // pages
  std::int64_t pages_there_ = 0;
  std::int64_t most_ = 0;
};

}  // namespace rl
