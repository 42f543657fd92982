// Lineage: the task that made an object. References to the object keep it, so that an object whose
// copies are lost can be made again, or its loss be explained. See Wang et al., "Ownership: A
// Distributed Futures System for Fine-Grained Tasks", NSDI 2021.
#pragma once

#include <string>
#include <utility>

#include "runtime/call/fwd.h"
#include "runtime/core/result.h"
#include "runtime/store/object_location.h"

namespace runtime {

/// Any thread.
class Lineage {
 public:
  virtual ~Lineage() = default;

  /// For messages: "task resize".
  virtual std::string maker() const = 0;
  /// Where others that find the object lost can have it made again: "HOST:PORT" of the node of a
  /// process that can. Empty: nowhere.
  virtual std::string keeper() const { return ""; }
  /// Lets the maker run again, since what is at `lost` cannot be read. The returned state settles
  /// with the new object, or with why there is none. Errors: why it does not run again.
  virtual Result<ObjectStatePtr> make_again(const ObjectLocation& lost) = 0;
};

/// Of the result of an actor's method, which depends on the actor's state and is never made again.
class CallLineage final : public Lineage {
 public:
  /// "Counter 7f3a0011: total"
  explicit CallLineage(std::string maker) : maker_(std::move(maker)) {}
  std::string maker() const override { return maker_; }
  Result<ObjectStatePtr> make_again(const ObjectLocation&) override {
    return unimplemented(
        "it is the result of an actor's method, which depends on the actor's state; only results "
        "of tasks are made again");
  }

 private:
  const std::string maker_;
};

}  // namespace runtime
