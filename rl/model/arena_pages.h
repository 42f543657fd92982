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
/// Borrows the arena, on the CPU. One thread at a time.
class ArenaPages {
 public:
  explicit ArenaPages(std::span<float> arena);
  ~ArenaPages();
  ArenaPages(const ArenaPages&) = delete;
  ArenaPages& operator=(const ArenaPages&) = delete;

  void take(const RangeSet& elements);
  /// What was taken, or was there at the beginning.
  void give_back(const RangeSet& elements);
  /// The same, and what is taken again is zero.
  void give_back_zeros(const RangeSet& elements);

  /// What is there and is read no more: whole pages of it have no memory until they are
  /// written again.
  void forget(const ArenaRange& range) const;

  /// Elements that may be used now, and the most that there were since reset_most(), whole pages.
  std::int64_t there() const { return pages_there_ * page_elements_; }
  std::int64_t most() const { return most_ * page_elements_; }
  void reset_most() { most_ = pages_there_; }

 private:
  struct Pages {
    std::size_t first = 0;
    std::size_t last = 0;  // one past
  };

  Pages pages_of(const ArenaRange& range) const;
  std::span<float> page(std::size_t index) const;
  void change(Pages pages, bool there) const;

  std::span<float> arena_;
  std::int64_t page_elements_ = 0;
  std::byte* begin_ = nullptr;        // of the first page that is the arena's alone
  std::vector<std::uint16_t> users_;  // by page
  std::int64_t pages_there_ = 0;
  std::int64_t most_ = 0;
};

}  // namespace rl
