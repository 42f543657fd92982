#include "runtime/head/sqlite_journal.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "runtime/core/disk_space.h"
#include "runtime/core/log.h"
#include "runtime/head/journal_reserve.h"
#include "runtime/head/log_check.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr int kFormat = 1;                  // PRAGMA user_version
constexpr int kApplicationId = 0x53544a4c;  // "STJL"
constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kBatchesTogether = 10'000;  // in one transaction
constexpr auto kRetryFirst = std::chrono::milliseconds(50);
constexpr auto kRetryMax = std::chrono::milliseconds(1000);
constexpr auto kLookForRoom = std::chrono::milliseconds(500);

std::uint64_t checksum(std::string_view key, std::string_view value) {
  return XXH3_64bits_withSeed(value.data(), value.size(), XXH3_64bits(key.data(), key.size()));
}

std::string sealed(const std::string& key, const std::string& value) {
  std::string bytes(kChecksumBytes, '\0');
  const std::uint64_t sum = checksum(key, value);
  std::memcpy(bytes.data(), &sum, kChecksumBytes);
  return bytes + value;
}

constexpr std::uintmax_t kDatabaseBytesMin = 512;  // SQLite's smallest page

class Statement {
 public:
  Statement(sqlite3* database, const char* sql) {
    code_ = sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  int prepared() const { return code_; }
  void bind(int index, const std::string& bytes) {
    sqlite3_bind_blob64(statement_, index, bytes.data(), bytes.size(), SQLITE_STATIC);
  }
  int step() { return code_ == SQLITE_OK ? sqlite3_step(statement_) : code_; }
  /// A step of a statement that gives no rows. Returns SQLITE_OK or what failed.
  int run() {
    const int code = step();
    if (statement_) sqlite3_reset(statement_);
    return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
  }
  std::string_view column(int index) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, index));
    return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, index))};
  }
  int number(int index) const { return sqlite3_column_int(statement_, index); }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int code_;
};

}  // namespace

/// The connection, the lock of its folder, and its reserve of room there.
struct SqliteJournal::Database {
  fs::path folder;
  int lock = -1;
  std::optional<JournalReserve> reserve;  // once the lock is held
  sqlite3* handle = nullptr;

  ~Database() {
    sqlite3_close(handle);
    if (lock >= 0) ::close(lock);
  }

  fs::path file() const { return folder / "journal.db"; }

  Status is_gone() const {
    return not_found("journal " + file().string() +
                     ": what was recorded there is gone; put it back, or mount its disk again");
  }

  Status error(int code) const {
    const std::string text = "journal " + file().string() + ": ";
    switch (code & 0xff) {
      case SQLITE_FULL: return resource_exhausted(text + "its disk is full; make room there");
      case SQLITE_CORRUPT:
      case SQLITE_NOTADB:
        return invalid_argument(
            text + "it is damaged (" + sqlite3_errmsg(handle) +
            "); put a copy in its place, or start a new cluster with another --journal");
      case SQLITE_BUSY: return unavailable(text + "another program has it open");
      case SQLITE_IOERR:
        return unavailable(text + "the disk does not read or write (" +
                           std::strerror(sqlite3_system_errno(handle)) + ")");
      default: return unavailable(text + sqlite3_errmsg(handle));
    }
  }

  Status run(const char* sql) const {
    const int code = sqlite3_exec(handle, sql, nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? Status() : error(code);
  }

  /// Who has the lock writes its process id into the file.
  Status take_lock() {
    const fs::path path = folder / "lock";
    lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) return unavailable("journal " + folder.string() + ": " + std::strerror(errno));
    if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
      char pid[32] = {};
      const ssize_t size = ::pread(lock, pid, sizeof pid - 1, 0);
      return unavailable(
          "journal " + folder.string() + " is in use by another head" +
          (size > 0 ? ", pid " + std::string(pid, static_cast<std::size_t>(size)) : std::string()) +
          "; stop that one, or name another --journal");
    }
    reserve.emplace(folder);
    return with_reserve([this] { return note_pid(); });
  }

  Status note_pid() const {
    const std::string pid = std::to_string(::getpid());
    if (::pwrite(lock, pid.data(), pid.size(), 0) < 0 ||
        ::ftruncate(lock, static_cast<off_t>(pid.size())) != 0) {
      return errno == ENOSPC
                 ? resource_exhausted("journal " + folder.string() +
                                      ": its disk is full; make room there")
                 : unavailable("journal " + folder.string() + ": " + std::strerror(errno));
    }
    return {};
  }

  /// Again with more of the reserve while the disk is full.
  template <class Work>
  Status with_reserve(Work work) {
    Status status = work();
    while (status.code() == ErrorCode::kResourceExhausted && reserve->release(0)) status = work();
    return status;
  }

  Result<int> pragma(const char* sql) const {
    Statement statement(handle, sql);
    const int code = statement.step();
    if (code != SQLITE_ROW) return error(code);
    return statement.number(0);
  }

  Status open() {
    sqlite3_close(std::exchange(handle, nullptr));  // of an attempt before
    // SQLite takes a file of one byte for an empty one.
    std::error_code none;
    if (const std::uintmax_t bytes = fs::file_size(file(), none);
        !none && bytes > 0 && bytes < kDatabaseBytesMin) {
      return invalid_argument(
          "journal " + file().string() + ": it is damaged (cut to " + std::to_string(bytes) +
          " bytes); put a copy in its place, or start a new cluster with another --journal");
    }
    if (int code = sqlite3_open_v2(file().c_str(), &handle,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                                   nullptr);
        code != SQLITE_OK)
      return error(code);
    sqlite3_extended_result_codes(handle, 1);
    // One process at a time: the index of the log needs no shared memory then.
    if (Status status = run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA "
                            "synchronous = FULL");
        !status.ok())
      return status;
    auto application = pragma("PRAGMA application_id");
    if (!application.ok()) return application.status();
    auto format = pragma("PRAGMA user_version");
    if (!format.ok()) return format.status();
    auto tables = pragma("SELECT count(*) FROM sqlite_master");
    if (!tables.ok()) return tables.status();
    if (*tables == 0) {
      const std::string sql =
          "BEGIN; CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID; "
          "PRAGMA application_id = " +
          std::to_string(kApplicationId) + "; PRAGMA user_version = " + std::to_string(kFormat) +
          "; COMMIT";
      return run(sql.c_str());
    }
    if (*application != kApplicationId)
      return invalid_argument("journal " + file().string() +
                              ": the file is something else than a journal");
    if (*format > kFormat) {
      return invalid_argument(
          "journal " + file().string() + ": it was written by a newer version (format " +
          std::to_string(*format) + ", this one reads up to " + std::to_string(kFormat) +
          "); start the newer version, or name another --journal");
    }
    return check();
  }

  /// Flipped bits in what holds the entries together; those in the entries themselves are seen by
  /// their checksums.
  Status check() const {
    Statement statement(handle, "PRAGMA quick_check(1)");
    const int code = statement.step();
    if (code != SQLITE_ROW) return error(code);
    if (statement.column(0) == "ok") return {};
    return invalid_argument(
        "journal " + file().string() + ": it is damaged (" + std::string(statement.column(0)) +
        "); put a copy in its place, or start a new cluster with another --journal");
  }

  /// Moves the log's content to the database, and the log begins again. Else the log would grow up
  /// to its thousand pages, which a full disk does not have.
  void empty_log(std::uint64_t bytes) {
    const auto try_it = [this] {
      return sqlite3_wal_checkpoint_v2(handle, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                                       nullptr);
    };
    if ((try_it() & 0xff) == SQLITE_FULL && reserve->release(bytes)) try_it();
  }

  /// All of them or none.
  int record(std::span<const std::vector<JournalWrite>* const> batches) const {
    Statement put(handle,
                  "INSERT INTO entries (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE "
                  "SET value = excluded.value");
    Statement remove(handle, "DELETE FROM entries WHERE key = ?1");
    int code = put.prepared() != SQLITE_OK ? put.prepared() : remove.prepared();
    if (code != SQLITE_OK) return code;
    code = sqlite3_exec(handle, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    for (const auto* batch : batches) {
      for (const JournalWrite& write : *batch) {
        if (code != SQLITE_OK) break;
        const std::string value = write.value ? sealed(write.key, *write.value) : std::string();
        Statement& statement = write.value ? put : remove;
        statement.bind(1, write.key);
        if (write.value) statement.bind(2, value);
        code = statement.run();
      }
    }
    if (code == SQLITE_OK) code = sqlite3_exec(handle, "COMMIT", nullptr, nullptr, nullptr);
    if (code != SQLITE_OK && sqlite3_get_autocommit(handle) == 0)
      sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr);
    return code;
  }
};

Result<std::unique_ptr<SqliteJournal>> SqliteJournal::open(EventLoop& loop, const fs::path& folder,
                                                           Missing missing) {
  auto database = std::make_unique<Database>();
  database->folder = folder;
  std::error_code error;
  if (missing == Missing::kIsRefused) {
    const std::uintmax_t bytes = fs::file_size(database->file(), error);
    if (error || bytes == 0) return database->is_gone();
  }
  const bool made = fs::create_directories(folder, error);
  if (error) return invalid_argument("journal " + folder.string() + ": " + error.message());
  if (made) fs::permissions(folder, fs::perms::owner_all, error);
  if (Status status = database->take_lock(); !status.ok()) return status;
  if (fs::is_symlink(database->file(), error))
    return invalid_argument("journal " + database->file().string() +
                            " is a link, whose log lies elsewhere; put the file itself there");
  if (Status status = check_write_ahead_log_of(database->file()); !status.ok()) return status;
  Status opened = database->with_reserve([&] { return database->open(); });
  if (!opened.ok()) return opened;
  std::unique_ptr<SqliteJournal> journal(new SqliteJournal(loop, std::move(database)));
  auto writer = Thread::start([raw = journal.get()] { raw->write_batches(); });
  if (!writer.ok()) return writer.status().with_context("journal " + folder.string());
  journal->writer_ = *std::move(writer);
  return journal;
}

SqliteJournal::SqliteJournal(EventLoop& loop, std::unique_ptr<Database> database)
    : loop_(loop), database_(std::move(database)) {
  look_for_room();
}

SqliteJournal::~SqliteJournal() {
  lifetime_.end();
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  if (writer_.joinable()) writer_.join();
}

Status SqliteJournal::load(
    const std::function<Status(const std::string& key, const std::string& value)>& entry) {
  Statement rows(database_->handle, "SELECT key, value FROM entries ORDER BY key");
  int code;
  while ((code = rows.step()) == SQLITE_ROW) {
    const std::string key(rows.column(0));
    const std::string_view bytes = rows.column(1);
    std::uint64_t sum = 0;
    if (bytes.size() >= kChecksumBytes) std::memcpy(&sum, bytes.data(), kChecksumBytes);
    const std::string value(bytes.substr(std::min(bytes.size(), kChecksumBytes)));
    if (bytes.size() < kChecksumBytes || sum != checksum(key, value)) {
      return invalid_argument(
          "journal " + database_->file().string() + ": entry '" + key +
          "' is damaged; put a copy in its place, or start a new cluster with another --journal");
    }
    if (Status status = entry(key, value); !status.ok())
      return status.with_context("journal " + database_->file().string() + ", entry '" + key + "'");
  }
  return code == SQLITE_DONE ? Status() : database_->error(code);
}

void SqliteJournal::write(std::vector<JournalWrite> batch, UniqueFunction<void()> recorded) {
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(batch), std::move(recorded)});
  }
  wake_.notify_one();
}

Status SqliteJournal::trouble() const {
  std::lock_guard lock(mutex_);
  return trouble_;
}

Status SqliteJournal::scarcity() const {
  std::lock_guard lock(mutex_);
  return scarcity_;
}

void SqliteJournal::look_for_room() {
  look_at_ = deadline_after(kLookForRoom);
  const bool has_room = database_->reserve->refill();
  Status scarcity;
  if (!has_room) {
    scarcity =
        resource_exhausted("journal " + disk_text(database_->folder) +
                           ": its disk is full; the remaining space is reserved for jobs, actors "
                           "and their ends; make room there");
  }
  std::lock_guard lock(mutex_);
  if (has_room && !scarcity_.ok()) LOG(info, "the journal's disk has room again");
  if (!has_room && scarcity_.ok()) LOG(warn, "{}", scarcity.message());
  scarcity_ = std::move(scarcity);
}

std::uint64_t SqliteJournal::bytes() const {
  std::uint64_t sum = 0;
  for (const char* name : {"journal.db", "journal.db-wal"}) {
    std::error_code error;
    if (const auto size = fs::file_size(database_->folder / name, error); !error) sum += size;
  }
  return sum;
}

void SqliteJournal::report(const Status& trouble) {
  std::lock_guard lock(mutex_);
  if (trouble_.ok() != trouble.ok()) {
    if (trouble.ok())
      LOG(info, "the journal records again");
    else
      LOG(error, "nothing is recorded: {}", trouble.message());
  }
  trouble_ = trouble;
}

bool SqliteJournal::collect(std::vector<Batch>& together) {
  std::unique_lock lock(mutex_);
  const auto is_due = [&] { return closing_ || !waiting_.empty() || !together.empty(); };
  while (!is_due()) {
    if (scarcity_.ok()) {
      wake_.wait(lock, is_due);
    } else if (!wake_.wait_for(lock, kLookForRoom, is_due)) {
      lock.unlock();
      look_for_room();
      lock.lock();
    }
  }
  while (!waiting_.empty() && together.size() < kBatchesTogether) {
    together.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return !together.empty();
}

bool SqliteJournal::record(const std::vector<Batch>& together) {
  std::vector<const std::vector<JournalWrite>*> batches;
  batches.reserve(together.size());
  std::uint64_t bytes = 0;
  for (const Batch& batch : together) {
    batches.push_back(&batch.writes);
    for (const JournalWrite& write : batch.writes)
      bytes += write.key.size() + (write.value ? write.value->size() : 0);
  }
  int code = database_->record(batches);
  const bool is_full = (code & 0xff) == SQLITE_FULL;
  while ((code & 0xff) == SQLITE_FULL && database_->reserve->release(bytes))
    code = database_->record(batches);
  if (is_full || (!scarcity().ok() && steady_now() >= look_at_)) look_for_room();
  if (code == SQLITE_OK && !scarcity().ok()) database_->empty_log(bytes);
  report(code == SQLITE_OK ? Status() : database_->error(code));
  return code == SQLITE_OK;
}

void SqliteJournal::write_batches() {
  auto pause = kRetryFirst;
  std::vector<Batch> together;
  while (collect(together)) {
    if (!record(together)) {
      std::unique_lock lock(mutex_);
      if (wake_.wait_for(lock, pause, [&] { return closing_; })) return;
      pause = std::min(2 * pause, kRetryMax);
      continue;
    }
    pause = kRetryFirst;
    loop_.post([alive = lifetime_.alive(), done = std::exchange(together, {})]() mutable {
      for (Batch& batch : done) {
        if (*alive && batch.recorded) batch.recorded();
      }
    });
    together.clear();
  }
}

}  // namespace runtime
