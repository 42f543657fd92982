// CallTarget: the called actor's identity, its methods, and how long calls of them may take.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <typeindex>

#include "runtime/call/actor_options.h"
#include "runtime/call/fwd.h"
#include "runtime/call/method.h"
#include "runtime/control/membership.h"
#include "runtime/core/result.h"

namespace runtime {

/// Constant. Any thread.
class CallTarget {
 public:
  explicit CallTarget(const ActorAddress& address);
  CallTarget(const CallTarget&) = delete;
  CallTarget& operator=(const CallTarget&) = delete;

  ActorId id() const { return id_; }
  const std::string& class_name() const { return class_name_; }
  /// "Counter 7f3a0011", for messages.
  std::string describe() const { return class_name_ + " " + id_.short_hex(); }
  /// Fills in what an address says of the actor, apart from where it is.
  void describe(ActorAddress& address) const;

  /// Calls do not wait for the arguments of earlier ones.
  bool is_out_of_order() const { return options_ && options_->out_of_order; }
  /// Errors: kInvalidArgument (another class, or a method that is not registered), as
  /// Registry::find.
  Result<const MethodEntry*> find_method(const Registry& registry, std::type_index type,
                                         const MethodKey& key) const;
  /// The longest that the call may take, from the call's wish and what is known of the method.
  std::chrono::milliseconds limit(const MethodEntry& method,
                                  std::chrono::milliseconds timeout) const;

 private:
  const ActorId id_;
  const std::string class_name_;
  const std::string encoded_options_;
  std::unique_ptr<const CallerOptions> options_;           // null: the default ones
  mutable std::atomic<const ActorClass*> class_{nullptr};  // known after the first call
};

}  // namespace runtime
