#include "runtime/head/recorded_line.h"

#include <chrono>
#include <string>
#include <utility>

#include "runtime/core/clock.h"

namespace runtime {

void RecordedLine::add(UniqueFunction<void()> action) {
  leaving_.push_back({written_ + 1, std::move(action)});
}

void RecordedLine::note_end(End end) {
  if (journal_) ends_.push_back({written_ + 1, std::move(end)});
}

void RecordedLine::end_turn(std::vector<JournalWrite> changes) {
  if (journal_ && !changes.empty()) {
    record(std::move(changes));
  } else {
    // What leaves in this turn waits for what was decided before it only.
    for (auto late = leaving_.rbegin(); late != leaving_.rend() && late->after > written_; ++late)
      late->after = written_;
    for (auto late = ends_.rbegin(); late != ends_.rend() && late->after > written_; ++late)
      late->after = written_;
  }
  let_go();
}

void RecordedLine::record(std::vector<JournalWrite> changes) {
  ++written_;
  journal_->write(
      std::move(changes), lifetime_.guard([this, through = written_, begun = steady_now()] {
        recorded_ = through;
        const auto took =
            static_cast<std::uint64_t>(std::chrono::nanoseconds(steady_now() - begun).count());
        record_sum_ns_ += took;
        ++record_times_[activity::bucket_of(took)];
        let_go();
      }));
}

void RecordedLine::let_go() {
  while (!leaving_.empty() && leaving_.front().after <= recorded_) {
    UniqueFunction<void()> action = std::move(leaving_.front().action);
    leaving_.pop_front();
    action();
  }
  while (!ends_.empty() && ends_.front().after <= recorded_) ends_.pop_front();
}

std::vector<RecordedLine::End> RecordedLine::take_unrecorded_ends() {
  std::vector<End> ends;
  if (!journal_ || journal_->trouble().ok()) return ends;
  for (WaitingEnd& waiting : std::exchange(ends_, {})) ends.push_back(std::move(waiting.end));
  return ends;
}

Numbers RecordedLine::numbers() const {
  Numbers numbers;
  if (!journal_) return numbers;
  numbers["journal_batches"] = static_cast<double>(recorded_);
  numbers["journal_waiting"] = static_cast<double>(written_ - recorded_);
  numbers["journal_seconds"] = static_cast<double>(record_sum_ns_) * 1e-9;
  numbers["journal_trouble"] = journal_->trouble().ok() ? 0 : 1;
  numbers["journal_bytes"] = static_cast<double>(journal_->bytes());
  for (std::size_t i = 0; i < record_times_.size(); ++i)
    numbers["journal_bucket_" + std::to_string(i)] = static_cast<double>(record_times_[i]);
  return numbers;
}

}  // namespace runtime
