// SqliteJournal: the journal as a SQLite database in its own folder.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>

#include "runtime/core/clock.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/result.h"
#include "runtime/core/thread.h"
#include "runtime/head/journal.h"
#include "runtime/transport/event_loop.h"

struct sqlite3;

namespace runtime {

/// Its own thread writes. Whatever arrives while one transaction is on its way to the disk makes up
/// the next (group commit). It uses write-ahead-log mode, with a sync for each transaction. Every
/// value carries a checksum over itself and its key. The folder is locked while the journal is
/// open, and the lock ends with the process however that ends. A full disk is written to from a
/// reserve (JournalReserve) until that is used up.
class SqliteJournal final : public Journal {
 public:
  enum class Missing : std::uint8_t { kIsMade, kIsRefused };

  /// Makes the folder (0700) if it is not there, unless a missing journal is refused. `loop`
  /// outlives the journal. Errors: kUnavailable (another process has it open: named),
  /// kInvalidArgument (not a journal; of a newer version; damaged), kResourceExhausted (disk full).
  /// kNotFound: there is none, or an empty one, and it is refused.
  static Result<std::unique_ptr<SqliteJournal>> open(EventLoop& loop,
                                                     const std::filesystem::path& folder,
                                                     Missing missing = Missing::kIsMade);
  SqliteJournal(const SqliteJournal&) = delete;
  SqliteJournal& operator=(const SqliteJournal&) = delete;
  /// Records what it can and closes; batches that cannot be recorded are lost, their callbacks
  /// never run.
  ~SqliteJournal() override;

  Status load(const std::function<Status(const std::string& key, const std::string& value)>& entry)
      override;
  void write(std::vector<JournalWrite> batch, UniqueFunction<void()> recorded) override;
  Status trouble() const override;
  Status scarcity() const override;
  std::uint64_t bytes() const override;

 private:
  struct Database;
  struct Batch {
    std::vector<JournalWrite> writes;
    UniqueFunction<void()> recorded;
  };

  SqliteJournal(EventLoop& loop, std::unique_ptr<Database> database);
  void write_batches();
  /// Takes what has arrived; false when it is to end.
  bool collect(std::vector<Batch>& together);
  /// Whether it was recorded, with what the reserve has if need be.
  bool record(const std::vector<Batch>& together);
  void look_for_room();
  void report(const Status& trouble);

  EventLoop& loop_;
  const std::unique_ptr<Database> database_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Batch> waiting_;
  Status trouble_;
  Status scarcity_;
  bool closing_ = false;
  Deadline look_at_{};  // for room again, while it is scarce; of the writer's
  Lifetime lifetime_;
  Thread writer_;
};

}  // namespace runtime
