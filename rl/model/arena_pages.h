// ArenaPages: memory of an arena that goes back to the system, and comes again, page by page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rl/mesh/range_set.h"

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
class ArenaPages {
 public:
  /// `kept_elements`: how many of those that are given back keep their memory until release(), at
  /// most.
  explicit ArenaPages(std::span<float> arena, std::int64_t kept_elements = 0);
  ~ArenaPages();
  ArenaPages(const ArenaPages&) = delete;
  ArenaPages& operator=(const ArenaPages&) = delete;

  void take(const RangeSet& elements);
  /// The same, and they are zero.
  void take_zeros(const RangeSet& elements);
  /// What was taken, or was there at the beginning.
  void give_back(const RangeSet& elements);
  /// The memory that was kept goes to the system.
  void release();

  /// What is there and is read no more: whole pages of it have no memory until they are
  /// written again.
  void forget(const ArenaRange& range) const;

  /// Elements that may be used now, whole pages.
  std::int64_t there() const { return pages_there_ * page_elements_; }
  /// The most that had memory since reset_most(), what was kept included.
  std::int64_t most() const { return most_ * page_elements_; }
  void reset_most() { most_ = pages_there_ + kept(); }

 private:
  struct Pages {
    std::size_t first = 0;
    std::size_t last = 0;  // one past

    std::size_t count() const { return last - first; }
  };

  // The pages among them that come from the system, and are zero.
  std::vector<Pages> bring(const RangeSet& elements);
  void bring(Pages absent, std::vector<Pages>& fresh);
  void use_in_place(Pages absent, std::vector<Pages>& gaps);
  bool move(Pages kept, Pages absent) const;
  void let_go(Pages pages);
  void drop(Pages pages) const;
  void allow(Pages pages, bool use) const;
  std::int64_t kept() const;  // pages

  Pages pages_of(const ArenaRange& range) const;
  ArenaRange elements_of(Pages pages) const;
  std::byte* at(std::size_t page) const { return begin_ + page * page_bytes(); }
  std::size_t page_bytes() const {
    return static_cast<std::size_t>(page_elements_) * sizeof(float);
  }

  std::span<float> arena_;
  std::int64_t page_elements_ = 0;
  std::byte* begin_ = nullptr;        // of the first page that is the arena's alone
  std::vector<std::uint16_t> users_;  // by page
  std::vector<Pages> spare_;          // given back, with their memory; they do not overlap
  std::int64_t may_keep_ = 0;         // pages
  std::int64_t pages_there_ = 0;
  std::int64_t most_ = 0;
};

}  // namespace rl
