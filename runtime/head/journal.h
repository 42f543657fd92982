// Journal: the store in which the head's state outlives its process. Keys and values, written in
// batches of which each is recorded whole or not at all, in order. sqlite_journal.h is the one that
// is used; a replicated store can take its place.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

/// A new value of a key; none: the key goes.
struct JournalWrite {
  std::string key;
  std::optional<std::string> value;
  bool operator==(const JournalWrite&) const = default;
};

/// Call it from the event loop it was made with.
class Journal {
 public:
  virtual ~Journal() = default;

  /// Hands out all that is recorded, in the order of the keys, before the first write. Ends with
  /// the first error that `entry` returns. Errors: kInvalidArgument, naming the journal and the
  /// key, when something recorded is damaged.
  virtual Status load(
      const std::function<Status(const std::string& key, const std::string& value)>& entry) = 0;

  /// Records in the background. `recorded` runs on the loop, never from inside the call, once this
  /// batch and all before it would survive the death of the process. They survive the machine's
  /// too, as far as its disk keeps what it says. While that is impossible, it goes on trying.
  virtual void write(std::vector<JournalWrite> batch, UniqueFunction<void()> recorded) = 0;

  /// Why batches are not being recorded at present, with the cure; success while all is well.
  virtual Status trouble() const = 0;

  /// Why what takes much room is better refused at present, with the cure. The disk is then full
  /// but for a reserve, which is for jobs, actors and their ends.
  virtual Status scarcity() const { return {}; }

  /// The bytes that the journal takes where it is kept; 0: not known.
  virtual std::uint64_t bytes() const { return 0; }
};

}  // namespace runtime
