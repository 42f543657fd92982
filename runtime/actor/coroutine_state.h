// CoroutineState: what a coroutine method's call holds while it runs.
#pragma once

#include <memory>
#include <utility>

#include "runtime/actor/decoder.h"
#include "runtime/actor/invoke.h"

namespace runtime {

struct CoroutineState {
  CoroutineState(std::shared_ptr<void> actor_, const MethodKey& method_, Buffer arguments_, std::vector<ObjectStatePtr> refs_,
                 const std::shared_ptr<Process>& process, CallContext context_)
      : actor(std::move(actor_)),
        method(method_),
        refs(std::move(refs_)),
        arguments(std::move(arguments_), refs, process),
        context(std::move(context_)) {}
  CoroutineState(const CoroutineState&) = delete;
  CoroutineState& operator=(const CoroutineState&) = delete;

  const std::shared_ptr<void> actor;
  const MethodKey& method;
  const std::vector<ObjectStatePtr> refs;
  Decoder arguments;
  const CallContext context;
  InvokeOutput output;
};

}  // namespace runtime
