#include "rl/model/arena_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/core/check.h"

namespace rl {

ArenaPages::ArenaPages(std::span<float> arena) : arena_(arena) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  page_elements_ = static_cast<std::int64_t>(page / sizeof(float));
  const auto address = reinterpret_cast<std::uintptr_t>(arena.data());
  const std::uintptr_t first = (address + page - 1) / page * page;
  const std::uintptr_t last = (address + arena.size_bytes()) / page * page;
  begin_ = reinterpret_cast<std::byte*>(first);
  users_.assign(last > first ? (last - first) / page : 0, 1);
  pages_there_ = most_ = std::ssize(users_);
  // What comes again with each pass comes by large pages, with fewer faults (docs/performance.md).
  if (!users_.empty()) (void)::madvise(begin_, last - first, MADV_HUGEPAGE);
}

ArenaPages::~ArenaPages() { change({0, users_.size()}, true); }

void ArenaPages::take(const RangeSet& elements) {
  for (const ArenaRange& range : elements.ranges()) {
    const Pages pages = pages_of(range);
    std::size_t begin = pages.first;
    for (std::size_t page = pages.first; page < pages.last; ++page) {
      if (users_[page]++ == 0) continue;
      change({begin, page}, true);
      begin = page + 1;
    }
    change({begin, pages.last}, true);
    pages_there_ += std::count(users_.begin() + static_cast<std::ptrdiff_t>(pages.first),
                               users_.begin() + static_cast<std::ptrdiff_t>(pages.last), 1);
  }
  most_ = std::max(most_, pages_there_);
}

void ArenaPages::give_back(const RangeSet& elements) {
  for (const ArenaRange& range : elements.ranges()) {
    const Pages pages = pages_of(range);
    std::size_t begin = pages.first;
    for (std::size_t page = pages.first; page < pages.last; ++page) {
      CHECK(users_[page] > 0);
      if (--users_[page] == 0) {
        --pages_there_;
        continue;
      }
      change({begin, page}, false);
      begin = page + 1;
    }
    change({begin, pages.last}, false);
  }
}

void ArenaPages::give_back_zeros(const RangeSet& elements) {
  give_back(elements);
  const auto zero = [&](float* begin, float* end) {
    if (begin < end) std::fill(begin, end, 0.0F);
  };
  for (const ArenaRange& range : elements.ranges()) {
    float* const begin = arena_.data() + range.begin;
    float* const end = arena_.data() + range.end;
    auto* const first = reinterpret_cast<float*>(begin_);
    zero(begin, std::min(end, first));
    const Pages of_range = pages_of(range);
    for (std::size_t index = of_range.first; index < of_range.last; ++index) {
      if (users_[index] == 0) continue;
      const std::span<float> stays = page(index);
      zero(std::max(begin, stays.data()), std::min(end, stays.data() + stays.size()));
    }
    zero(std::max(begin, first + std::ssize(users_) * page_elements_), end);
  }
}

void ArenaPages::forget(const ArenaRange& range) const {
  const std::size_t first = pages_of({0, range.begin}).last;  // behind those that hold more
  const std::size_t last = pages_of({range.end, range.end}).first;
  if (first >= last) return;
  const auto bytes = static_cast<std::size_t>(page_elements_) * sizeof(float);
  CHECK(::madvise(begin_ + first * bytes, (last - first) * bytes, MADV_DONTNEED) == 0);
}

std::span<float> ArenaPages::page(std::size_t index) const {
  return {reinterpret_cast<float*>(begin_) + index * static_cast<std::size_t>(page_elements_),
          static_cast<std::size_t>(page_elements_)};
}

// Those that hold some of it and nothing but the arena.
ArenaPages::Pages ArenaPages::pages_of(const ArenaRange& range) const {
  const auto offset = [&](std::int64_t element) {
    return reinterpret_cast<const std::byte*>(arena_.data() + element) - begin_;
  };
  const std::ptrdiff_t bytes = page_elements_ * static_cast<std::ptrdiff_t>(sizeof(float));
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(offset(range.begin), 0) / bytes;
  const std::ptrdiff_t last = (std::max<std::ptrdiff_t>(offset(range.end), 0) + bytes - 1) / bytes;
  const auto count = std::ssize(users_);
  return {static_cast<std::size_t>(std::min<std::ptrdiff_t>(first, count)),
          static_cast<std::size_t>(std::min<std::ptrdiff_t>(last, count))};
}

void ArenaPages::change(Pages pages, bool there) const {
  if (pages.first >= pages.last) return;
  const auto bytes = static_cast<std::size_t>(page_elements_) * sizeof(float);
  std::byte* const begin = begin_ + pages.first * bytes;
  const std::size_t size = (pages.last - pages.first) * bytes;
  if (!there) CHECK(::madvise(begin, size, MADV_DONTNEED) == 0);
  CHECK(::mprotect(begin, size, there ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
}

}  // namespace rl
