// CoroutineState: the state of a coroutine method's call while it runs.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "runtime/call/invoke.h"
#include "runtime/codec/decoder.h"

namespace runtime {

struct CoroutineState {
  CoroutineState(std::shared_ptr<void> actor_, const MethodKey& method_,
                 std::vector<ObjectStatePtr> refs_, CallContext context_)
      : actor(std::move(actor_)),
        method(method_),
        refs(std::move(refs_)),
        context(std::move(context_)) {}
  CoroutineState(const CoroutineState&) = delete;
  CoroutineState& operator=(const CoroutineState&) = delete;

  const std::shared_ptr<void> actor;
  const MethodKey& method;
  const std::vector<ObjectStatePtr> refs;
  std::optional<Decoder> arguments;  // once their bytes are here, before the method starts
  const CallContext context;
  InvokeOutput output;
};

}  // namespace runtime
