// A device that is not the CPU, as a plugin of LibTorch, on machines without one:
// libtorch_standin.so. Its memory lies in pages that the host may not touch. So code which reads or
// writes a device's tensors through pointers faults here as it would with a GPU. What it computes,
// it computes on the CPU, tensor by tensor (LibTorch's fallback). Slow, and meant to be: it shows
// that every tensor is where it has to be. As CUDA does, it refuses operators whose tensors are on
// several devices, and generators of another device.
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr auto kStandIn = c10::DeviceType::PrivateUse1;
constexpr std::size_t kFilledBytesMax = 64 << 10;

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
}

struct Block {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

std::atomic<std::size_t> taken_bytes{0};
std::atomic<std::size_t> most_bytes{0};

void count_taken(std::size_t bytes) {
  const std::size_t now = taken_bytes += bytes;
  std::size_t most = most_bytes;
  while (now > most && !most_bytes.compare_exchange_weak(most, now)) {
  }
}

// Addresses that were reserved, and which of their pages have memory.
struct Reserved {
  std::size_t bytes = 0;
  std::vector<bool> mapped;
};

constexpr std::size_t kPageBytes = 16 << 10;
std::mutex reserved_mutex;
std::map<std::byte*, Reserved> all_reserved;  // by their begin

// Lets the host use memory of the device, or forbids it: of reserved addresses the pages that have
// some.
void protect(void* memory, std::size_t bytes, int protection) {
  const std::lock_guard lock(reserved_mutex);
  const auto found = all_reserved.find(static_cast<std::byte*>(memory));
  if (found == all_reserved.end()) {
    ::mprotect(memory, bytes, protection);
    return;
  }
  const std::vector<bool>& mapped = found->second.mapped;
  for (std::size_t page = 0; page < mapped.size(); ++page) {
    const std::size_t first = page;
    while (page < mapped.size() && mapped[page]) ++page;
    if (page > first)
      ::mprotect(found->first + first * kPageBytes, (page - first) * kPageBytes, protection);
  }
}

// What the device has: STARLING_STANDIN_BYTES, as it is now.
std::size_t device_bytes() {
  const char* set = std::getenv("STARLING_STANDIN_BYTES");
  return set != nullptr ? std::strtoull(set, nullptr, 10) : std::size_t{8} << 30;
}

void free_block(void* context) {
  auto* block = static_cast<Block*>(context);
  taken_bytes -= block->bytes;
  ::munmap(block->memory, block->bytes);
  delete block;
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    auto block = std::make_unique<Block>();
    block->bytes = whole_pages(bytes);
    if (taken_bytes + block->bytes > device_bytes())
      throw c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, "standin out of memory");
    block->memory = ::mmap(nullptr, block->bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block->memory == MAP_FAILED) throw std::bad_alloc();
    count_taken(block->bytes);
    void* memory = block->memory;
    // Not the zeros of fresh pages: a device gives what another tensor left. Read as floats: NaN.
    // Of large ones the beginning alone, for time.
    ::mprotect(memory, block->bytes, PROT_READ | PROT_WRITE);
    std::memset(memory, 0xFF, std::min(block->bytes, kFilledBytesMax));
    ::mprotect(memory, block->bytes, PROT_NONE);
    return {memory, block.release(), &free_block, c10::Device(kStandIn, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.reserved_bytes.front().peak = static_cast<std::int64_t>(most_bytes.load());
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex) override {
    const std::size_t all = device_bytes();
    return {all - std::min<std::size_t>(all, taken_bytes), all};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

// The pages among all that were reserved; the lock is held.
template <class Work>
void each_page(void* begin, std::size_t bytes, const Work& work) {
  auto* const at = static_cast<std::byte*>(begin);
  const auto after = all_reserved.upper_bound(at);
  if (after == all_reserved.begin()) std::abort();
  auto& [first, reserved] = *std::prev(after);
  const auto offset = static_cast<std::size_t>(at - first);
  if (offset + bytes > reserved.bytes || offset % kPageBytes != 0 || bytes % kPageBytes != 0)
    std::abort();
  for (std::size_t page = offset / kPageBytes; page < (offset + bytes) / kPageBytes; ++page)
    work(first + page * kPageBytes, reserved.mapped[page]);
}

Allocator allocator;
REGISTER_ALLOCATOR(kStandIn, &allocator)

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kStandIn; }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  c10::Device getDevice() const override { return {kStandIn, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return c10::Stream(c10::Stream::DEFAULT, stream.device());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    c10::DataPtr memory = allocator.allocate(bytes);
    storage.set_data_ptr_noswap(
        std::move(memory));  // what was there is not kept: only results of the fallback are resized
    storage.set_nbytes(bytes);
  }
};

// Opens a tensor's memory to the host while it lives.
class Opened {
 public:
  explicit Opened(const at::Tensor& tensor) {
    if (tensor.device().type() != kStandIn) return;
    memory_ = tensor.storage().mutable_data();
    bytes_ = whole_pages(tensor.storage().nbytes());
    protect(memory_, bytes_, PROT_READ | PROT_WRITE);
  }
  ~Opened() {
    if (memory_ != nullptr) protect(memory_, bytes_, PROT_NONE);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// The same elements as the host sees them, while the tensor is opened.
at::Tensor as_host(const at::Tensor& tensor) {
  if (tensor.device().type() != kStandIn) return tensor;
  void* first = static_cast<char*>(tensor.storage().mutable_data()) +
                static_cast<std::size_t>(tensor.storage_offset()) * tensor.element_size();
  return at::from_blob(first, tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  static std::mutex mutex;  // one copy at a time: none closes what another has opened
  const std::lock_guard lock(mutex);
  const Opened opened_from(from);
  const Opened opened_to(to);
  if (from.numel() > 0) as_host(to).copy_(as_host(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &allocator,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                         std::optional<at::ScalarType> type, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &allocator,
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(type));
}

at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(
      self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
      offset ? std::optional<std::int64_t>(offset->guard_int(__FILE__, __LINE__)) : std::nullopt);
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor reshape_alias(const at::Tensor& self, c10::SymIntArrayRef size,
                         c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size),
                                    C10_AS_INTARRAYREF_SLOW(stride));
}

at::Tensor unfold(const at::Tensor& self, std::int64_t dimension, std::int64_t size,
                  std::int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}

const at::Tensor& resize(const at::Tensor& self, c10::SymIntArrayRef size,
                         std::optional<at::MemoryFormat> format) {
  return at::native::resize_(self, C10_AS_INTARRAYREF_SLOW(size), format);
}

// What CUDA's kernels take from the host: scalars, and the indices of an indexed tensor.
bool may_be_on_the_host(const at::Tensor& tensor, const std::string& op) {
  return tensor.dim() == 0 || op.starts_with("aten::index.Tensor") ||
         op.starts_with("aten::_index_put_impl_");
}

void check_tensor(const at::Tensor& tensor, const std::string& op) {
  if (!tensor.defined() || tensor.device().type() == kStandIn) return;
  TORCH_CHECK(may_be_on_the_host(tensor, op), op,
              ": Expected all tensors to be on the same device, but found at least two devices, ",
              "standin:0 and ", tensor.device());
}

void check_argument(const c10::IValue& argument, const std::string& op) {
  if (argument.isTensor()) return check_tensor(argument.toTensor(), op);
  if (argument.isTensorList()) {
    for (const at::Tensor& tensor : argument.toTensorVector()) check_tensor(tensor, op);
  } else if (argument.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : argument.toOptionalTensorVector())
      if (tensor) check_tensor(*tensor, op);
  } else if (argument.isGenerator()) {
    const at::Generator& generator = argument.toGenerator();
    TORCH_CHECK(!generator.defined() || generator.device().type() == kStandIn, op,
                ": Expected a 'standin' device type for generator but found '", generator.device(),
                "'");
  }
}

// CUDA adds rows that go to one place in no order, so that sums differ from run to run.
void check_order(const at::Tensor& index, const std::string& op) {
  const Opened opened(index);
  const at::Tensor host = as_host(index).to(at::kLong).contiguous();
  const auto* first = host.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> rows(first, first + host.numel());
  std::sort(rows.begin(), rows.end());
  TORCH_CHECK(std::adjacent_find(rows.begin(), rows.end()) == rows.end(), op,
              ": adds several rows to one, in no order");
}

void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = c10::toString(op.operator_name());
  for (const c10::IValue& argument : torch::jit::last(*stack, op.schema().arguments().size()))
    check_argument(argument, name);
  if (name.starts_with("aten::index_add"))
    check_order(torch::jit::peek(*stack, 2, op.schema().arguments().size()).toTensor(), name);
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &as_strided);
  m.impl("view", &view);
  m.impl("_reshape_alias", &reshape_alias);
  m.impl("unfold", &unfold);
  m.impl("resize_", &resize);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

}  // namespace

// Memory that comes by pages; see PluginMemory. What these are told wrongly ends the process.
extern "C" {
std::size_t standin_page_bytes() { return kPageBytes; }

void* standin_reserve(std::size_t bytes) {
  void* const begin =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  const std::lock_guard lock(reserved_mutex);
  all_reserved[static_cast<std::byte*>(begin)] = {bytes,
                                                  std::vector<bool>(bytes / kPageBytes, false)};
  return begin;
}

void standin_release(void* begin, std::size_t bytes) {
  const std::lock_guard lock(reserved_mutex);
  each_page(begin, bytes, [](std::byte*, std::vector<bool>::reference mapped) {
    if (mapped) std::abort();
  });
  all_reserved.erase(static_cast<std::byte*>(begin));
  ::munmap(begin, bytes);
}

int standin_map(void* begin, std::size_t bytes) {
  if (taken_bytes + bytes > device_bytes()) return 1;
  const std::lock_guard lock(reserved_mutex);
  each_page(begin, bytes, [](std::byte* page, std::vector<bool>::reference mapped) {
    if (mapped) std::abort();
    mapped = true;
    ::mprotect(page, kPageBytes, PROT_READ | PROT_WRITE);
    std::memset(page, 0xFF, kPageBytes);  // what another tensor left
    ::mprotect(page, kPageBytes, PROT_NONE);
  });
  count_taken(bytes);
  return 0;
}

void standin_unmap(void* begin, std::size_t bytes) {
  const std::lock_guard lock(reserved_mutex);
  each_page(begin, bytes, [](std::byte* page, std::vector<bool>::reference mapped) {
    if (!mapped) std::abort();
    mapped = false;
    ::madvise(page, kPageBytes, MADV_DONTNEED);
  });
  taken_bytes -= bytes;
}
}

namespace {

const bool registered = [] {
  c10::register_privateuse1_backend("standin");
  at::RegisterPrivateUse1HooksInterface(new Hooks());
  return true;
}();

}  // namespace
