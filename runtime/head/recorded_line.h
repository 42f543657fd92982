// RecordedLine: the queue of actions that leave the head once the journal has what was decided
// before them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/control/observe.h"
#include "runtime/core/lifetime.h"
#include "runtime/head/journal.h"
#include "runtime/observe/activity_layout.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

/// Actions leave in order. So what was said to others is true after any crash.
class RecordedLine {
 public:
  /// What a node gets to know of a job's end even if that cannot be recorded.
  struct End {
    NodeId node;
    ControlRequest request;
  };

  /// Without a journal nothing waits longer than its turn.
  explicit RecordedLine(std::unique_ptr<Journal> journal) : journal_(std::move(journal)) {}
  RecordedLine(const RecordedLine&) = delete;
  RecordedLine& operator=(const RecordedLine&) = delete;

  /// Null: nothing is recorded.
  const Journal* journal() const { return journal_.get(); }
  Journal* journal() { return journal_.get(); }

  /// Within a turn: runs once everything that is decided in it is recorded.
  void add(UniqueFunction<void()> action);
  /// The end is among what was added.
  void note_end(End end);
  /// The turn is over, in which that has changed.
  void end_turn(std::vector<JournalWrite> changes);
  /// While nothing can be recorded: the ends that wait, each once.
  std::vector<End> take_unrecorded_ends();

  /// For metrics; empty without a journal.
  Numbers numbers() const;

 private:
  struct Leaving {
    std::uint64_t after;  // that many batches recorded
    UniqueFunction<void()> action;
  };
  struct WaitingEnd {
    std::uint64_t after;
    End end;
  };
  void record(std::vector<JournalWrite> changes);
  void let_go();

  const std::unique_ptr<Journal> journal_;
  std::uint64_t written_ = 0;  // batches
  std::uint64_t recorded_ = 0;
  // Numbers of batches by how long their recording took.
  std::array<std::uint64_t, activity::kBuckets> record_times_{};
  std::uint64_t record_sum_ns_ = 0;
  std::deque<Leaving> leaving_;
  std::deque<WaitingEnd> ends_;  // that are among them
  Lifetime lifetime_;
};

}  // namespace runtime
