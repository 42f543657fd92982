#include "tests/support/null_gpu/ledger.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace null_gpu {
namespace {

constexpr std::size_t kTotalBytes = std::size_t{80} << 30;

const char* text_of(Work work) {
  switch (work) {
    case Work::kLaunch: return "kernel";
    case Work::kProduct: return "product";
    case Work::kCopy: return "copy";
    case Work::kSync: return "sync";
    case Work::kOther: break;
  }
  return "other";
}

}  // namespace

// Never destroyed: libraries ask while the process ends.
Ledger& Ledger::get() {
  static auto* ledger = new Ledger();
  return *ledger;
}

void Ledger::add(Work work, const std::string& name) {
  const std::lock_guard lock(mutex_);
  ++calls_[{work, name}];
}

void Ledger::reset() {
  const std::lock_guard lock(mutex_);
  calls_.clear();
}

Counts Ledger::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts;
  for (const auto& [call, times] : calls_) {
    if (call.first == Work::kLaunch) counts.launches += times;
    if (call.first == Work::kProduct) counts.products += times;
    if (call.first == Work::kCopy) counts.copies += times;
    if (call.first == Work::kSync) counts.syncs += times;
  }
  return counts;
}

std::vector<std::string> Ledger::lines() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<long, std::string>> all;
  for (const auto& [call, times] : calls_)
    all.emplace_back(times, std::string(text_of(call.first)) + " " + call.second);
  std::sort(all.rbegin(), all.rend());
  std::vector<std::string> lines;
  for (const auto& [times, name] : all) lines.push_back("  " + std::to_string(times) + " " + name);
  return lines;
}

Memory& Memory::get() {
  static auto* memory = new Memory();
  return *memory;
}

std::size_t Memory::total() {
  const char* set = std::getenv("NULL_GPU_BYTES");
  return set != nullptr ? std::strtoull(set, nullptr, 10) : kTotalBytes;
}

std::size_t Memory::free() const {
  const std::lock_guard lock(mutex_);
  return total() - std::min(total(), taken_);
}

void* Memory::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > total() - std::min(total(), taken_)) return nullptr;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  blocks_[static_cast<const char*>(memory)] = bytes;
  taken_ += bytes;
  return memory;
}

void Memory::release(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<const char*>(memory));
  if (found == blocks_.end()) return;
  ::munmap(memory, found->second);
  taken_ -= found->second;
  blocks_.erase(found);
}

bool Memory::has(const void* address) const {
  const std::lock_guard lock(mutex_);
  auto found = blocks_.upper_bound(static_cast<const char*>(address));
  if (found == blocks_.begin()) return false;
  --found;
  return static_cast<const char*>(address) < found->first + found->second;
}

}  // namespace null_gpu

void null_gpu_reset() { null_gpu::Ledger::get().reset(); }

void null_gpu_counts(null_gpu::Counts* counts) { *counts = null_gpu::Ledger::get().counts(); }

void null_gpu_print() {
  for (const std::string& line : null_gpu::Ledger::get().lines())
    std::fprintf(stderr, "%.160s\n", line.c_str());
}
