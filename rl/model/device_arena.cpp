#include "rl/model/device_arena.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "rl/cuda/virtual_memory.h"
#include "rl/model/device.h"
#include "rl/model/guarded.h"

namespace rl {

using runtime::Result;

// The addresses, and which of their pages have memory.
class DeviceArena::Pages {
 public:
  Pages(at::Device device, std::shared_ptr<VirtualMemory> memory, void* begin,
        std::int64_t elements)
      : device_(device),
        memory_(std::move(memory)),
        begin_(static_cast<std::byte*>(begin)),
        elements_(elements),
        there_(pages_for(elements, memory_->page_bytes()), 0) {}
  ~Pages() {
    const c10::DeviceGuard guard(device_);
    unmap({0, there_.size()});
    memory_->trim();
    memory_->release(begin_, there_.size() * memory_->page_bytes());
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  static std::size_t pages_for(std::int64_t elements, std::size_t page_bytes) {
    const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
    return std::max<std::size_t>(1, (bytes + page_bytes - 1) / page_bytes);
  }

  const at::Device& device() const { return device_; }
  VirtualMemory& memory() const { return *memory_; }
  float* begin() const { return reinterpret_cast<float*>(begin_); }
  std::int64_t elements() const { return elements_; }
  std::size_t count() const { return there_.size(); }

  // Those of them that have none; returns how many.
  std::int64_t map(PageRun pages) {
    return each_run(pages, 0, [this](PageRun absent) {
      throw_unless_ok(memory_->map(at(absent.first), bytes_of(absent)));
      mark(absent, 1);
    });
  }
  std::int64_t unmap(PageRun pages) {
    return each_run(pages, 1, [this](PageRun present) {
      memory_->unmap(at(present.first), bytes_of(present));
      mark(present, 0);
    });
  }

 private:
  template <class Work>
  std::int64_t each_run(PageRun pages, char state, const Work& work) {
    std::int64_t count = 0;
    for (std::size_t page = pages.first; page < pages.last;) {
      const auto state_at = [&](std::size_t i) { return there_[i] == state; };
      if (!state_at(page)) {
        ++page;
        continue;
      }
      PageRun run{page, page};
      while (run.last < pages.last && state_at(run.last)) ++run.last;
      work(run);
      count += static_cast<std::int64_t>(run.count());
      page = run.last;
    }
    return count;
  }
  void mark(PageRun run, char state) {
    std::fill(there_.begin() + static_cast<std::ptrdiff_t>(run.first),
              there_.begin() + static_cast<std::ptrdiff_t>(run.last), state);
  }
  std::byte* at(std::size_t page) const { return begin_ + page * memory_->page_bytes(); }
  std::size_t bytes_of(PageRun run) const { return run.count() * memory_->page_bytes(); }

  const at::Device device_;
  const std::shared_ptr<VirtualMemory> memory_;
  std::byte* const begin_;
  const std::int64_t elements_;
  std::vector<char> there_;  // by page
};

Result<std::shared_ptr<DeviceArena>> DeviceArena::make(const at::Device& device,
                                                       std::int64_t elements,
                                                       const RangeSet& there) {
  const c10::DeviceGuard guard(device);
  const Result<std::shared_ptr<VirtualMemory>> memory =
      virtual_memory_of(device_kind(device), std::max<int>(device.index(), 0));
  if (!memory.ok()) return memory.status();
  const std::size_t page = (*memory)->page_bytes();
  const Result<void*> begin = (*memory)->reserve(Pages::pages_for(elements, page) * page);
  if (!begin.ok()) return begin.status();
  auto pages = std::make_shared<Pages>(device, *memory, *begin, elements);
  return guarded<std::shared_ptr<DeviceArena>>("an arena on " + device.str(), [&] {
    std::shared_ptr<DeviceArena> arena(new DeviceArena(std::move(pages)));
    arena->put_memory(there);
    return arena;
  });
}

DeviceArena::DeviceArena(std::shared_ptr<Pages> pages)
    : pages_(std::move(pages)),
      tensor_(at::for_blob(pages_->begin(), {pages_->elements()})
                  .deleter([kept = pages_](void*) {})
                  .options(at::TensorOptions().dtype(at::kFloat).device(pages_->device()))
                  .target_device(pages_->device())
                  .make_tensor()),
      elements_(tensor_.variable_data()),
      page_elements_(static_cast<std::int64_t>(pages_->memory().page_bytes() / sizeof(float))),
      users_(pages_->count(), 1) {}

PageRun DeviceArena::pages_of(const ArenaRange& range) const {
  if (range.begin >= range.end) return {};
  return {static_cast<std::size_t>(range.begin / page_elements_),
          static_cast<std::size_t>((range.end + page_elements_ - 1) / page_elements_)};
}

void DeviceArena::put_memory(const RangeSet& elements) {
  const c10::DeviceGuard guard(pages_->device());
  for (const ArenaRange& range : elements.ranges()) pages_there_ += pages_->map(pages_of(range));
  most_ = std::max(most_, pages_there_);
}

// Also what is taken from the beginning on, and has no memory yet.
void DeviceArena::take(const RangeSet& elements) {
  for (const ArenaRange& range : elements.ranges()) (void)users_.add(pages_of(range));
  put_memory(elements);
}

void DeviceArena::give_back(const RangeSet& elements) {
  const c10::DeviceGuard guard(pages_->device());
  const c10::impl::VirtualGuardImpl device(pages_->device().type());
  device.synchronizeStream(device.getStream(pages_->device()));
  for (const ArenaRange& range : elements.ranges()) {
    for (const PageRun& unused : users_.remove(pages_of(range)))
      pages_there_ -= pages_->unmap(unused);
  }
}

void DeviceArena::release() { pages_->memory().trim(); }

}  // namespace rl
