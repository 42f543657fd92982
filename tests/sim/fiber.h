// Fiber: a thread of a simulated process. Fibers take turns in the one thread of the simulation:
// one runs until it waits.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/call/actor_scope.h"
#include "runtime/worker/actor_executor.h"

namespace sim {

class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  /// It must have ended, or never begun.
  ~Fiber();

  /// From outside of any fiber: runs it until it waits or ends.
  void resume();
  /// From inside of the running fiber: back to its resumer.
  static void suspend();
  /// Null outside of fibers.
  static Fiber* current();

  bool done() const { return done_; }

 private:
  static void enter();

  std::function<void()> body_;
  std::byte* stack_ = nullptr;
  ucontext_t own_{};
  ucontext_t outer_{};
  bool begun_ = false;
  bool done_ = false;
  void* fake_stack_ = nullptr;  // AddressSanitizer's
  void* outer_fake_stack_ = nullptr;
  const void* outer_bottom_ = nullptr;
  std::size_t outer_bytes_ = 0;
  // What production keeps in thread-local variables across a wait.
  runtime::ActorExecutor::Current executor_{};
  runtime::ActorInstance scope_{};
};

}  // namespace sim
