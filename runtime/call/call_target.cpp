#include "runtime/call/call_target.h"

#include <algorithm>
#include <utility>

#include "runtime/call/registry.h"
#include "runtime/core/log.h"

namespace runtime {

CallTarget::CallTarget(const ActorAddress& address)
    : id_(address.actor),
      class_name_(address.class_name),
      encoded_options_(address.caller_options) {
  Result<CallerOptions> options = decode_caller_options(address.caller_options);
  if (!options.ok())
    LOG(warn, "{}: {}", describe(), options.status().message());
  else if (!options->is_default())
    options_ = std::make_unique<const CallerOptions>(*std::move(options));
}

void CallTarget::describe(ActorAddress& address) const {
  address.actor = id_;
  address.class_name = class_name_;
  address.caller_options = encoded_options_;
}

Result<const MethodEntry*> CallTarget::find_method(const Registry& registry, std::type_index type,
                                                   const MethodKey& key) const {
  const ActorClass* known = class_.load(std::memory_order_acquire);
  if (!known || known->type() != type) {
    auto found = registry.find(type);
    if (!found.ok()) return found.status();
    known = *found;
    if (known->name() != class_name_) {
      return invalid_argument("actor " + id_.short_hex() + " is a " + class_name_ + ", not a " +
                              known->name());
    }
    class_.store(known, std::memory_order_release);
  }
  const MethodEntry* method = known->find(key);
  if (!method) {
    return invalid_argument("a method of " + known->name() +
                            " is called that is not registered: add it to register_actor<" +
                            known->name() + ">(...) in main");
  }
  return method;
}

std::chrono::milliseconds CallTarget::limit(const MethodEntry& method,
                                            std::chrono::milliseconds timeout) const {
  if (method.timeout.count() > 0) timeout = std::min(timeout, method.timeout);
  if (!options_) return timeout;
  auto found = options_->method_timeouts.find(method.name);
  return found == options_->method_timeouts.end() ? timeout : std::min(timeout, found->second);
}

}  // namespace runtime
