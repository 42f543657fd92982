#include "rl/model/pass_memory.h"

#include <ATen/ops/copy.h>
#include <ATen/ops/empty.h>

#include <utility>

#include "rl/model/arena_pages.h"
#include "rl/model/device_arena.h"
#include "rl/model/tensor_span.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

at::Tensor part(const at::Tensor& arena, const ArenaRange& range) {
  return arena.narrow(0, range.begin, range.size());
}

// Pages on the device, and pages on the host while ranks exchange what is in them.
class DevicePassMemory final : public PassMemory {
 public:
  DevicePassMemory(std::shared_ptr<DeviceArena> device, std::int64_t kept_elements)
      : device_(std::move(device)),
        host_(at::empty({device_->tensor().numel()})),
        pages_(elements_of(host_), kept_elements) {
    pages_.give_back({{0, host_.numel()}});
    pages_.release();
  }

  void take(const RangeSet& elements) override { device_->take(elements); }
  void take_zeros(const RangeSet& elements) override {
    device_->take(elements);
    for (const ArenaRange& range : elements.ranges()) part(device_->elements(), range).zero_();
  }
  void give_back(const RangeSet& elements) override { device_->give_back(elements); }
  void release() override {
    device_->release();
    pages_.release();
  }

  std::span<float> host() const override { return elements_of(host_); }
  void open_host(const RangeSet& elements) override { pages_.take(elements); }
  void send_up(const RangeSet& elements) override {
    for (const ArenaRange& range : elements.ranges())
      part(device_->elements(), range).copy_(part(host_, range));
    pages_.give_back(elements);
  }
  void bring_down(const RangeSet& elements) override {
    pages_.take(elements);
    for (const ArenaRange& range : elements.ranges())
      part(host_, range).copy_(part(device_->elements(), range));
  }
  void close_host(const RangeSet& elements) override { pages_.give_back(elements); }
  void forget(const ArenaRange& range) override { pages_.forget(range); }

  std::int64_t most() const override { return device_->most(); }
  void reset_most() override { device_->reset_most(); }

 private:
  const std::shared_ptr<DeviceArena> device_;
  const at::Tensor host_;
  ArenaPages pages_;  // of host_
};

class CopiedMemory final : public PassMemory {
 public:
  CopiedMemory(at::Tensor device, at::Tensor host)
      : device_(std::move(device)), host_(std::move(host)) {}

  void take(const RangeSet& /*elements*/) override {}
  void take_zeros(const RangeSet& /*elements*/) override { CHECK(false); }
  void give_back(const RangeSet& /*elements*/) override {}
  void release() override {}
  std::span<float> host() const override { return elements_of(host_); }
  void send_up(const RangeSet& elements) override {
    for (const ArenaRange& range : elements.ranges())
      part(device_, range).copy_(part(host_, range));
  }
  void forget(const ArenaRange& /*range*/) override {}
  std::int64_t most() const override { return device_.numel(); }
  void reset_most() override {}

 private:
  const at::Tensor device_, host_;
};

}  // namespace

std::unique_ptr<PassMemory> pass_memory_of(const Parameters& parameters,
                                           std::int64_t kept_elements) {
  if (parameters.pages() != nullptr)
    return std::make_unique<DevicePassMemory>(parameters.pages(), kept_elements);
  CHECK(parameters.arena().device().is_cpu());
  return std::make_unique<ArenaPages>(elements_of(parameters.arena()), kept_elements);
}

std::unique_ptr<PassMemory> copied_memory(const Parameters& parameters, const at::Tensor& host) {
  return std::make_unique<CopiedMemory>(parameters.arena(), host);
}

}  // namespace rl
