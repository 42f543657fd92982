#include "runtime/call/task_lineage.h"

#include <utility>

#include "runtime/call/method.h"
#include "runtime/call/registry.h"
#include "runtime/call/stored_object.h"

namespace runtime {

namespace {
constexpr std::size_t kOverhead = 512;  // of a lineage without arguments, about
}

TaskLineage::TaskLineage(const TaskSource& source, std::string keeper, Submit submit)
    : function_(source.function),
      keeper_(std::move(keeper)),
      submit_(std::move(submit)),
      bytes_(kOverhead + source.arguments.bytes.size()),
      argument_bytes_(source.arguments.bytes),
      argument_object_(source.arguments.stored),
      runs_left_(source.runs_left) {
  if (argument_object_) bytes_ += argument_object_->size();
  for (const ObjectStatePtr& ref : source.arguments.refs) {
    Input input;
    const bool is_stored = ref->failure().ok() && ref->value().stored != nullptr;
    input.object = ref;
    if (is_stored)
      input.lineage = std::dynamic_pointer_cast<TaskLineage>(ref->value().stored->lineage());
    if (!input.lineage) {
      input.kept = ref;
      if (ref->failure().ok())
        bytes_ += is_stored ? ref->value().stored->size() : ref->value().bytes.size();
    }
    bytes_ += sizeof(Input);
    inputs_.push_back(std::move(input));
  }
}

std::string TaskLineage::maker() const { return "task " + function_->name; }

void TaskLineage::forget(std::string why) {
  // What is dropped may be the last of other objects: after the lock.
  Buffer bytes;
  std::shared_ptr<StoredObject> object;
  std::vector<Input> inputs;
  std::lock_guard lock(mutex_);
  bytes = std::exchange(argument_bytes_, {});
  object = std::move(argument_object_);
  inputs = std::exchange(inputs_, {});
  forgotten_ = std::move(why);
}

Result<ObjectStatePtr> TaskLineage::obtain(Input& input, std::size_t position) {
  if (input.kept) return input.kept;
  if (ObjectStatePtr there = input.object.lock()) return there;
  Result<ObjectStatePtr> made = input.lineage->run_again();
  if (!made.ok())
    return made.status().with_context("its argument by reference number " +
                                      std::to_string(position + 1));
  input.object = *made;
  return made;
}

Result<ObjectStatePtr> TaskLineage::run_again() {
  std::lock_guard lock(mutex_);
  if (!forgotten_.empty()) return object_lost(forgotten_);
  if (runs_left_ == 0) return object_lost("its task may not run again (TaskOptions::max_retries)");
  ObjectValue arguments;
  arguments.bytes = argument_bytes_;
  arguments.stored = argument_object_;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    Result<ObjectStatePtr> input = obtain(inputs_[i], i);
    if (!input.ok()) return input.status();
    arguments.refs.push_back(*std::move(input));
  }
  Result<ObjectStatePtr> made = submit_(std::move(arguments), shared_from_this());
  if (made.ok()) --runs_left_;
  return made;
}

}  // namespace runtime
