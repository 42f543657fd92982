#include "rl/model/offload.h"

#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Storage.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "rl/model/device.h"
#include "rl/model/guarded.h"
#include "runtime/core/check.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

// Which layer a parameter belongs to: the first number among the parts of its name,
// "model.layers.3.mlp.experts.7.up_proj.weight". Nothing: to none.
std::optional<std::size_t> layer_of(std::string_view name) {
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error == std::errc() && end == part.data() + part.size()) return number;
    name.remove_prefix(std::min(name.size(), part.size() + 1));
  }
  return std::nullopt;
}

std::vector<std::vector<ArenaRange>> stages_of(std::span<const ParameterSpec> specs) {
  std::vector<std::vector<ArenaRange>> stages(1);
  for (const ParameterSpec& spec : specs) {
    const std::optional<std::size_t> layer = layer_of(spec.name);
    const std::size_t stage = layer ? *layer + 1 : 0;
    if (stage >= stages.size()) stages.resize(stage + 1);
    std::vector<ArenaRange>& ranges = stages[stage];
    // The gaps between parameters hold zeros on both sides; taking them along makes one copy of
    // many.
    const bool follows = !ranges.empty() && spec.offset - ranges.back().end < kArenaAlignment;
    if (follows)
      ranges.back().end = spec.offset + spec.count;
    else
      ranges.push_back({spec.offset, spec.offset + spec.count});
  }
  return stages;
}

// Views of the tensor stay what they are: they share its storage, which is without memory until
// take_memory().
void give_memory_back(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  storage.set_data_ptr_noswap(c10::DataPtr(nullptr, tensor.device()));
  storage.set_nbytes(0);
}

void take_memory(const at::Tensor& tensor) {
  const c10::DeviceGuard guard(tensor.device());
  const std::size_t bytes = static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
  const c10::Storage& storage = tensor.storage();
  storage.set_data_ptr_noswap(c10::GetAllocator(tensor.device().type())->allocate(bytes));
  storage.set_nbytes(bytes);
}

}  // namespace

Offload::Offload(Transformer& model, const OffloadOptions& options, at::Tensor host)
    : model_(model), options_(options), host_(std::move(host)) {
  const at::Tensor& arena = model.parameters().arena();
  active_ = !arena.device().is_cpu() && options.any();
  if (!active_) return;
  if (options_.parameters) {
    CHECK(arena.storage_offset() == 0 && arena.is_contiguous());
    if (!host_.defined()) host_ = arena.to(at::kCPU);
    stages_ = stages_of(model.parameters().specs());
  }
  model_.tell(*this);
  with_gradients_ = model_.gradients_enabled();
  stays_ = 1;
  leave();
}

Offload::~Offload() {
  if (!active_) return;
  join();
  model_.stop_telling(*this);
}

Offload::Stay Offload::stay(bool with_gradients) {
  if (!active_) return Stay();
  const bool first = stays_ == 0;
  Stay stay(*this);
  come(first, with_gradients);
  return stay;
}

void Offload::come(bool first, bool with_gradients) {
  if (first) {
    const std::lock_guard lock(mutex_);
    stages_there_ = 0;
    failure_ = nullptr;
  }
  try {
    make_room(with_gradients);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    return;
  }
  if (!first || !options_.parameters) return;
  auto thread = runtime::Thread::start_real([this] { fetch(); });
  if (thread.ok())
    thread_ = *std::move(thread);
  else
    fetch();  // no more threads for this process: all weights before the first layer, then
}

void Offload::make_room(bool with_gradients) {
  if (options_.gradients && with_gradients && !with_gradients_) {
    GradientArena& gradients = model_.gradient_arena();
    take_memory(gradients.memory().arena());
    with_gradients_ = true;
    gradients.renew();
  }
  const at::Tensor& arena = model_.parameters().arena();
  if (!options_.parameters || arena.storage().nbytes() > 0) return;
  take_memory(arena);
  // The memory may be what passes before this one still read; another stream does not wait for
  // them.
  const c10::impl::VirtualGuardImpl device(arena.device().type());
  device.synchronizeStream(device.getStream(arena.device()));
}

void Offload::fetch() {
  try {
    const at::Tensor& arena = model_.parameters().arena();
    std::optional<c10::StreamGuard> stream;  // a separate one, or the copies would wait for the
                                             // computing that they are to continue behind
    if (arena.device().is_cuda())
      stream.emplace(c10::impl::VirtualGuardImpl(arena.device().type())
                         .getStreamFromGlobalPool(arena.device()));
    for (const std::vector<ArenaRange>& stage : stages_) {
      for (const ArenaRange& range : stage)
        arena.narrow(0, range.begin, range.end - range.begin)
            .copy_(
                host_.narrow(0, range.begin, range.end - range.begin));  // returns when it is there
      const std::lock_guard lock(mutex_);
      ++stages_there_;
      arrived_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    arrived_.notify_all();
  }
}

void Offload::await_stages(std::size_t count) {
  CHECK(stays_ > 0);  // no one fetches otherwise
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] {
    return failure_ != nullptr || stages_there_ >= std::min(count, stages_.size());
  });
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

runtime::Status Offload::await() {
  if (!active_) return {};
  return guarded<void>("weights on their way to their device",
                       [&] { await_stages(stages_.size()); });
}

void Offload::join() {
  if (thread_.joinable()) thread_.join();
}

// Called where nothing may be thrown. What a device that has failed says here it has said in the
// pass before.
void Offload::leave() {
  if (--stays_ > 0) return;
  join();
  {
    const std::lock_guard lock(mutex_);
    stages_there_ = 0;
  }
  try {
    if (options_.parameters) give_memory_back(model_.parameters().arena());
    if (options_.gradients && std::exchange(with_gradients_, false)) {
      model_.gradient_arena().drop();
      give_memory_back(model_.gradient_arena().memory().arena());
    }
    release_cached_memory(model_.parameters().arena().device());
  } catch (const std::exception& error) {
    LOG(error, "giving a device its memory back: {}", error.what());
  }
}

}  // namespace rl
