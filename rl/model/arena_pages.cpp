#include "rl/model/arena_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/core/check.h"

namespace rl {

ArenaPages::ArenaPages(std::span<float> arena, std::int64_t kept_elements) : arena_(arena) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  page_elements_ = static_cast<std::int64_t>(page / sizeof(float));
  may_keep_ = (kept_elements + page_elements_ - 1) / page_elements_;
  const auto address = reinterpret_cast<std::uintptr_t>(arena.data());
  const std::uintptr_t first = (address + page - 1) / page * page;
  const std::uintptr_t last = (address + arena.size_bytes()) / page * page;
  begin_ = reinterpret_cast<std::byte*>(first);
  users_ = PageUsers(last > first ? (last - first) / page : 0, 1);
  pages_there_ = most_ = static_cast<std::int64_t>(users_.pages());
  // What comes from the system with each pass comes by large pages, with fewer faults.
  if (users_.pages() > 0) (void)::madvise(begin_, last - first, MADV_HUGEPAGE);
}

ArenaPages::~ArenaPages() {
  release();
  allow({0, users_.pages()}, true);
}

void ArenaPages::take(const RangeSet& elements) { (void)bring(elements); }

void ArenaPages::take_zeros(const RangeSet& elements) {
  std::vector<ArenaRange> zeros;
  for (const PageRun& pages : bring(elements)) zeros.push_back(elements_of(pages));
  const RangeSet others = elements.without(RangeSet(std::move(zeros)));
  for (const ArenaRange& range : others.ranges())
    std::fill(arena_.data() + range.begin, arena_.data() + range.end, 0.0F);
}

std::vector<PageRun> ArenaPages::bring(const RangeSet& elements) {
  std::vector<PageRun> fresh;
  for (const ArenaRange& range : elements.ranges()) {
    for (const PageRun& absent : users_.add(pages_of(range))) bring(absent, fresh);
  }
  most_ = std::max(most_, pages_there_ + kept());
  return fresh;
}

void ArenaPages::bring(PageRun absent, std::vector<PageRun>& fresh) {
  if (absent.first >= absent.last) return;
  pages_there_ += static_cast<std::int64_t>(absent.count());
  std::vector<PageRun> gaps;
  use_in_place(absent, gaps);
  for (PageRun& gap : gaps) {
    while (gap.first < gap.last && !spare_.empty()) {
      PageRun& spare = spare_.back();
      const std::size_t count = std::min(gap.count(), spare.count());
      if (!move({spare.last - count, spare.last}, {gap.first, gap.first + count})) {
        release();
        break;
      }
      gap.first += count;
      spare.last -= count;
      if (spare.first == spare.last) spare_.pop_back();
    }
    if (gap.first < gap.last) fresh.push_back(gap);
  }
  allow(absent, true);
}

// Spare pages that are wanted where they are stay there. `gaps` gets the others that are wanted.
void ArenaPages::use_in_place(PageRun absent, std::vector<PageRun>& gaps) {
  std::vector<PageRun> left, used;
  for (const PageRun& spare : spare_) {
    const PageRun both{std::max(spare.first, absent.first), std::min(spare.last, absent.last)};
    if (both.first >= both.last) {
      left.push_back(spare);
      continue;
    }
    used.push_back(both);
    if (spare.first < both.first) left.push_back({spare.first, both.first});
    if (both.last < spare.last) left.push_back({both.last, spare.last});
  }
  spare_ = std::move(left);
  std::ranges::sort(used, {}, &PageRun::first);
  std::size_t begin = absent.first;
  for (const PageRun& pages : used) {
    if (begin < pages.first) gaps.push_back({begin, pages.first});
    begin = pages.last;
  }
  if (begin < absent.last) gaps.push_back({begin, absent.last});
}

// False where the kernel cannot do so (before Linux 5.7, or with too many mappings).
bool ArenaPages::move(PageRun kept, PageRun absent) const {
  const std::size_t bytes = kept.count() * page_bytes();
  // The old addresses stay the arena's, without memory: no other thread can get them.
  if (::mremap(at(kept.first), bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
               at(absent.first)) != MAP_FAILED)
    return true;
  // The kernel may have unmapped the new ones before it failed.
  CHECK(::mmap(at(absent.first), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) != MAP_FAILED);
  return false;
}

void ArenaPages::give_back(const RangeSet& elements) {
  for (const ArenaRange& range : elements.ranges()) {
    for (const PageRun& unused : users_.remove(pages_of(range))) let_go(unused);
  }
}

void ArenaPages::let_go(PageRun pages) {
  if (pages.first >= pages.last) return;
  pages_there_ -= static_cast<std::int64_t>(pages.count());
  const auto keep =
      std::min<std::size_t>(pages.count(), static_cast<std::size_t>(may_keep_ - kept()));
  const PageRun spare{pages.first, pages.first + keep};
  drop({spare.last, pages.last});
  allow(pages, false);
  if (keep > 0) spare_.push_back(spare);
}

void ArenaPages::release() {
  for (const PageRun& pages : spare_) drop(pages);
  spare_.clear();
}

std::int64_t ArenaPages::kept() const {
  std::int64_t count = 0;
  for (const PageRun& pages : spare_) count += static_cast<std::int64_t>(pages.count());
  return count;
}

void ArenaPages::forget(const ArenaRange& range) {
  const std::size_t first = pages_of({0, range.begin}).last;  // behind those that hold more
  const std::size_t last = pages_of({range.end, range.end}).first;
  drop({first, last});
}

ArenaRange ArenaPages::elements_of(PageRun pages) const {
  const std::int64_t before = reinterpret_cast<float*>(begin_) - arena_.data();
  return {before + static_cast<std::int64_t>(pages.first) * page_elements_,
          before + static_cast<std::int64_t>(pages.last) * page_elements_};
}

// Those that hold some of it and nothing but the arena.
PageRun ArenaPages::pages_of(const ArenaRange& range) const {
  const auto offset = [&](std::int64_t element) {
    return reinterpret_cast<const std::byte*>(arena_.data() + element) - begin_;
  };
  const std::ptrdiff_t bytes = page_elements_ * static_cast<std::ptrdiff_t>(sizeof(float));
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(offset(range.begin), 0) / bytes;
  const std::ptrdiff_t last = (std::max<std::ptrdiff_t>(offset(range.end), 0) + bytes - 1) / bytes;
  const auto count = static_cast<std::ptrdiff_t>(users_.pages());
  return {static_cast<std::size_t>(std::min<std::ptrdiff_t>(first, count)),
          static_cast<std::size_t>(std::min<std::ptrdiff_t>(last, count))};
}

void ArenaPages::drop(PageRun pages) const {
  if (pages.first >= pages.last) return;
  CHECK(::madvise(at(pages.first), pages.count() * page_bytes(), MADV_DONTNEED) == 0);
}

void ArenaPages::allow(PageRun pages, bool use) const {
  if (pages.first >= pages.last) return;
  CHECK(::mprotect(at(pages.first), pages.count() * page_bytes(),
                   use ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
}

}  // namespace rl
