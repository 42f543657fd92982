// TaskLineage: everything to run a task again for its result. LineageTable: bounds what a process
// keeps for that.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/call/lineage.h"
#include "runtime/call/object_state.h"

namespace runtime {

/// What is run again: a task without what is of one run.
struct TaskSource {
  const MethodEntry* function = nullptr;
  ObjectValue arguments;
  std::uint32_t runs_left = 0;
};

class LineageTable;

/// Of the large result of a task. Keeps the task's small and encoded arguments, and of its
/// arguments by reference those that cannot be made again themselves; of the others only their
/// lineage, so that a chain of results keeps none of its links in memory. Any thread.
class TaskLineage final : public Lineage, public std::enable_shared_from_this<TaskLineage> {
 public:
  /// Submits the task anew; its result has this lineage again.
  using Submit = std::function<Result<ObjectStatePtr>(ObjectValue arguments,
                                                      std::shared_ptr<TaskLineage> lineage)>;

  /// `keeper`: the node of this process.
  TaskLineage(const TaskSource& source, std::string keeper, Submit submit);
  TaskLineage(const TaskLineage&) = delete;
  TaskLineage& operator=(const TaskLineage&) = delete;
  ~TaskLineage() override;

  std::string maker() const override;
  std::string keeper() const override { return keeper_; }
  Result<ObjectStatePtr> make_again(const ObjectLocation&) override { return run_again(); }
  Result<ObjectStatePtr> run_again();

  /// What it keeps, in bytes.
  std::size_t bytes() const { return bytes_; }

 private:
  friend class LineageTable;
  struct Input {
    ObjectStatePtr kept;                   // the object itself, or
    std::weak_ptr<ObjectState> object;     // while somebody else keeps it,
    std::shared_ptr<TaskLineage> lineage;  // or how to make it again
  };
  void forget(std::string why);
  static Result<ObjectStatePtr> obtain(Input& input, std::size_t position);

  const MethodEntry* const function_;
  const std::string keeper_;
  const Submit submit_;
  std::size_t bytes_ = 0;
  std::shared_ptr<LineageTable> table_;  // it is in
  std::uint64_t number_ = 0;             // there

  std::mutex mutex_;  // guards what follows
  Buffer argument_bytes_;
  std::shared_ptr<StoredObject> argument_object_;
  std::vector<Input> inputs_;
  std::uint32_t runs_left_ = 0;
  std::string forgotten_;  // why
};

/// The lineages of a process. Those that are too much are forgotten, oldest first; their objects
/// are then lost for good when their copies are.
class LineageTable : public std::enable_shared_from_this<LineageTable> {
 public:
  explicit LineageTable(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  LineageTable(const LineageTable&) = delete;
  LineageTable& operator=(const LineageTable&) = delete;

  void add(const std::shared_ptr<TaskLineage>& lineage);
  std::size_t bytes() const;

 private:
  friend class TaskLineage;
  void remove(std::uint64_t number);

  const std::size_t bytes_max_;
  mutable std::mutex mutex_;  // guards what follows
  std::uint64_t next_ = 1;
  struct Entry {
    std::weak_ptr<TaskLineage> lineage;
    std::size_t bytes;
  };
  std::map<std::uint64_t, Entry> lineages_;  // by age
  std::size_t bytes_ = 0;
};

}  // namespace runtime
