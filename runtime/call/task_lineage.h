// TaskLineage: everything to run a task again for its result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/call/lineage.h"
#include "runtime/call/lineage_table.h"
#include "runtime/call/object_state.h"

namespace runtime {

/// What is run again: a task without what is of one run.
struct TaskSource {
  const MethodEntry* function = nullptr;
  ObjectValue arguments;
  std::uint32_t runs_left = 0;
};

/// Of the large result of a task. Keeps the task's small and encoded arguments. Of its arguments by
/// reference it keeps those that cannot be made again themselves. Of the others it keeps only their
/// lineage, so that a chain of results keeps none of its links in memory. Any thread.
class TaskLineage final : public Lineage,
                          public Forgettable,
                          public std::enable_shared_from_this<TaskLineage> {
 public:
  /// Submits the task again; its result has this lineage again.
  using Submit = std::function<Result<ObjectStatePtr>(ObjectValue arguments,
                                                      std::shared_ptr<TaskLineage> lineage)>;

  /// `keeper`: the node of this process.
  TaskLineage(const TaskSource& source, std::string keeper, Submit submit);
  TaskLineage(const TaskLineage&) = delete;
  TaskLineage& operator=(const TaskLineage&) = delete;

  /// Once, before other threads see it: the table bounds what this keeps, together with others.
  void keep_in(LineageTable& table) { place_ = table.add(weak_from_this(), bytes_); }
  void forget(std::string why) override;

  std::string maker() const override;
  std::string keeper() const override { return keeper_; }
  Result<ObjectStatePtr> make_again(const ObjectLocation&) override { return run_again(); }
  Result<ObjectStatePtr> run_again();

  /// The bytes that it keeps.
  std::size_t bytes() const { return bytes_; }

 private:
  struct Input {
    ObjectStatePtr kept;                   // the object itself, or
    std::weak_ptr<ObjectState> object;     // while others keep it,
    std::shared_ptr<TaskLineage> lineage;  // or how to make it again
  };
  static Result<ObjectStatePtr> obtain(Input& input, std::size_t position);

  const MethodEntry* const function_;
  const std::string keeper_;
  const Submit submit_;
  std::size_t bytes_ = 0;
  LineageTable::Place place_;

  std::mutex mutex_;  // guards what follows
  Buffer argument_bytes_;
  std::shared_ptr<StoredObject> argument_object_;
  std::vector<Input> inputs_;
  std::uint32_t runs_left_ = 0;
  std::string forgotten_;  // why
};

}  // namespace runtime
