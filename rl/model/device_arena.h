// DeviceArena: an arena on a device whose memory comes and goes page by page.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "rl/mesh/range_set.h"
#include "rl/model/page_users.h"
#include "runtime/core/result.h"

namespace rl {

/// Views of the arena's tensor stay what they are while the memory behind them is away. A use at
/// the wrong time is a fault of the device. It begins as taken as a whole, though only what `there`
/// names has memory, which holds anything. One thread at a time.
class DeviceArena {
 public:
  /// Errors: those of virtual_memory_of() and VirtualMemory.
  static runtime::Result<std::shared_ptr<DeviceArena>> make(const at::Device& device,
                                                            std::int64_t elements,
                                                            const RangeSet& there);
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  /// fp32 [elements].
  const at::Tensor& tensor() const { return tensor_; }
  /// The same memory, for what is written behind autograd's back: graphs do not take it for a
  /// change of what they keep.
  const at::Tensor& elements() const { return elements_; }

  /// Throws a StatusException: kResourceExhausted, the device has no memory left; see
  /// VirtualMemory::map().
  void take(const RangeSet& elements);
  /// Waits for what computes with them.
  void give_back(const RangeSet& elements);
  /// What the driver kept for the next pages goes back to the device.
  void release();

  std::int64_t most() const { return most_ * page_elements_; }
  void reset_most() { most_ = pages_there_; }

 private:
  class Pages;

  explicit DeviceArena(std::shared_ptr<Pages> pages);
  PageRun pages_of(const ArenaRange& range) const;
  void put_memory(const RangeSet& elements);

  const std::shared_ptr<Pages> pages_;  // which the tensor keeps
  at::Tensor tensor_, elements_;
  std::int64_t page_elements_ = 0;
  PageUsers users_;
  std::int64_t pages_there_ = 0;
  std::int64_t most_ = 0;
};

}  // namespace rl
