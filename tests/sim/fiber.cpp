#include "fiber.h"

#include <sys/mman.h>

#include <utility>
#include <vector>

#include "runtime/core/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace sim {

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStackBytes = 2 << 20;
#else
constexpr std::size_t kStackBytes = 512 << 10;
#endif
constexpr std::size_t kGuardBytes = 4096;

Fiber* running = nullptr;

/// Stacks of ended fibers, to be used again.
std::vector<std::byte*>& spare_stacks() {
  static std::vector<std::byte*> stacks;
  return stacks;
}

std::byte* take_stack() {
  auto& spare = spare_stacks();
  if (!spare.empty()) {
    std::byte* stack = spare.back();
    spare.pop_back();
    return stack;
  }
  void* mapped = ::mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  CHECK(mapped != MAP_FAILED);
  CHECK(::mprotect(mapped, kGuardBytes, PROT_NONE) == 0);
  return static_cast<std::byte*>(mapped) + kGuardBytes;
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {
  CHECK(::getcontext(&own_) == 0);
  own_.uc_stack.ss_sp = stack_;
  own_.uc_stack.ss_size = kStackBytes;
  own_.uc_link = nullptr;
  ::makecontext(&own_, &Fiber::enter, 0);
}

Fiber::~Fiber() {
  CHECK(done_ || !begun_);
  spare_stacks().push_back(stack_);
}

Fiber* Fiber::current() { return running; }

void Fiber::enter() {
  Fiber* self = running;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->outer_bottom_, &self->outer_bytes_);
#endif
  self->body_();
  self->body_ = nullptr;
  self->done_ = true;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, self->outer_bottom_, self->outer_bytes_);
#endif
  ::setcontext(&self->outer_);
}

void Fiber::resume() {
  CHECK(running == nullptr);
  CHECK(!done_);
  begun_ = true;
  running = this;
  auto executor = runtime::ActorExecutor::exchange_current(executor_);
  auto scope = runtime::ActorScope::exchange_current(scope_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&outer_fake_stack_, stack_, kStackBytes);
#endif
  ::swapcontext(&outer_, &own_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(outer_fake_stack_, nullptr, nullptr);
#endif
  executor_ = runtime::ActorExecutor::exchange_current(executor);
  scope_ = runtime::ActorScope::exchange_current(scope);
  running = nullptr;
}

void Fiber::suspend() {
  Fiber* self = running;
  CHECK(self != nullptr);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&self->fake_stack_, self->outer_bottom_, self->outer_bytes_);
#endif
  ::swapcontext(&self->own_, &self->outer_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(self->fake_stack_, &self->outer_bottom_, &self->outer_bytes_);
#endif
}

}  // namespace sim
