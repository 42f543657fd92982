#include "runtime/head/sqlite_journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>

#include "runtime/core/disk_space.h"
#include "runtime/head/log_check.h"
#include "tests/support/eventually.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

using Entries = std::map<std::string, std::string>;

class SqliteJournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<SqliteJournal> open() {
    auto journal = SqliteJournal::open(*loop_, folder_);
    EXPECT_TRUE(journal.ok()) << journal.status().to_string();
    return journal.ok() ? std::move(*journal) : nullptr;
  }
  Status open_error() { return SqliteJournal::open(*loop_, folder_).status(); }

  /// Whether it was recorded within the time.
  bool write(SqliteJournal& journal, std::vector<JournalWrite> batch,
             std::chrono::milliseconds patience = std::chrono::seconds(10)) {
    auto recorded = std::make_shared<Event>(*loop_);
    journal.write(std::move(batch), [recorded] { recorded->set(); });
    return loop_->run_until(*recorded, deadline_after(patience));
  }
  static Result<Entries> load(SqliteJournal& journal) {
    Entries entries;
    Status status = journal.load([&](const std::string& key, const std::string& value) {
      entries[key] = value;
      return Status();
    });
    if (!status.ok()) return status;
    return entries;
  }
  Entries contents() {
    auto journal = open();
    auto entries = load(*journal);
    EXPECT_TRUE(entries.ok()) << entries.status().to_string();
    return entries.ok() ? *entries : Entries();
  }
  /// As another program would.
  void run_sql(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &database), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  fs::path file() const { return folder_ / "journal.db"; }
  fs::path log() const { return folder_ / "journal.db-wal"; }

  support::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path() / "journal";
  std::unique_ptr<EventLoop> loop_ = std::make_unique<EventLoop>();
};

TEST_F(SqliteJournalTest, IsNotMadeWhereOneHasToBeThere) {
  const auto again = [this] {
    return SqliteJournal::open(*loop_, folder_, SqliteJournal::Missing::kIsRefused).status();
  };
  EXPECT_EQ(again().code(), ErrorCode::kNotFound);
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_TRUE(write(*open(), {{"a", "1"}}));
  EXPECT_TRUE(again().ok()) << again().to_string();
  fs::resize_file(file(), 0);
  EXPECT_EQ(again().code(), ErrorCode::kNotFound);
}

TEST_F(SqliteJournalTest, KeepsWhatWasRecorded) {
  const std::string binary("\0bytes\xff", 7);
  {
    auto journal = open();
    EXPECT_EQ(load(*journal)->size(), 0u);
    EXPECT_TRUE(write(*journal, {{"b", "2"}, {"a", binary}, {"c", "3"}}));
    EXPECT_TRUE(write(*journal, {{"b", std::nullopt}, {"c", "4"}, {"never there", std::nullopt}}));
  }
  EXPECT_EQ(contents(), (Entries{{"a", binary}, {"c", "4"}}));
}

TEST_F(SqliteJournalTest, HandsEntriesOutInTheOrderOfTheirKeys) {
  auto journal = open();
  ASSERT_TRUE(write(*journal, {{"b/2", ""}, {"a/10", ""}, {"b/1", ""}}));
  std::string order;
  ASSERT_TRUE(journal
                  ->load([&](const std::string& key, const std::string&) {
                    order += key + " ";
                    return Status();
                  })
                  .ok());
  EXPECT_EQ(order, "a/10 b/1 b/2 ");
}

TEST_F(SqliteJournalTest, RecordsInOrder) {
  auto journal = open();
  std::vector<int> order;
  Event last(*loop_);
  for (int i = 0; i < 1000; ++i) {
    journal->write({{"key", std::to_string(i)}}, [&order, &last, i] {
      order.push_back(i);
      if (i == 999) last.set();
    });
  }
  ASSERT_TRUE(loop_->run_until(last, deadline_after(std::chrono::seconds(30))));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), 1000u);
  EXPECT_EQ(load(*journal)->at("key"), "999");
}

TEST_F(SqliteJournalTest, RefusesASecondHead) {
  auto journal = open();
  const Status refused = open_error();
  EXPECT_EQ(refused.code(), ErrorCode::kUnavailable);
  EXPECT_NE(refused.message().find("in use by another head, pid " + std::to_string(::getpid())),
            std::string::npos)
      << refused.message();
  journal.reset();
  EXPECT_TRUE(open_error().ok());
}

TEST_F(SqliteJournalTest, RefusesANewerFormat) {
  open().reset();
  run_sql("PRAGMA user_version = 7");
  const Status refused = open_error();
  EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("newer version (format 7"), std::string::npos)
      << refused.message();
}

TEST_F(SqliteJournalTest, RefusesWhatIsNoJournal) {
  fs::create_directories(folder_);
  run_sql("CREATE TABLE accounts (name)");
  EXPECT_NE(open_error().message().find("something else than a journal"), std::string::npos);
  fs::remove(file());
  std::ofstream(file()) << std::string(5000, 'x');
  const Status refused = open_error();
  EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("damaged"), std::string::npos) << refused.message();
}

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST_F(SqliteJournalTest, NamesTheEntryThatHasAFlippedBit) {
  {
    auto journal = open();
    ASSERT_TRUE(
        write(*journal, {{"node/1", "something that is easy to find"}, {"node/2", "another"}}));
  }
  std::string bytes = read_file(file());
  const std::size_t at = bytes.find("easy");
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 4;
  std::ofstream(file(), std::ios::binary) << bytes;
  auto journal = open();
  auto entries = load(*journal);
  EXPECT_EQ(entries.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(entries.status().message().find("entry 'node/1' is damaged"), std::string::npos)
      << entries.status().message();
}

TEST_F(SqliteJournalTest, RefusesAFileThatWasCutToAlmostNothing) {
  {
    auto journal = open();
    ASSERT_TRUE(write(*journal, {{"node/1", "here"}}));
  }
  for (std::uintmax_t bytes : {511u, 100u, 1u}) {
    fs::resize_file(file(), bytes);
    EXPECT_EQ(open_error().code(), ErrorCode::kInvalidArgument) << bytes;
    EXPECT_NE(open_error().message().find("cut to " + std::to_string(bytes) + " bytes"),
              std::string::npos)
        << open_error().message();
  }
}

TEST_F(SqliteJournalTest, NeverCrashesOnFlippedBits) {
  {
    auto journal = open();
    for (int i = 0; i < 50; ++i)
      ASSERT_TRUE(write(*journal, {{"key/" + std::to_string(i), std::string(300, 'v')}}));
  }
  const std::string good = read_file(file());
  ASSERT_GT(good.size(), 8192u);
  std::size_t refused = 0;
  for (std::size_t at = 0; at < good.size(); at += 97) {
    std::string bytes = good;
    bytes[at] ^= 1 << (at % 8);
    std::ofstream(file(), std::ios::binary) << bytes;
    auto journal = SqliteJournal::open(*loop_, folder_);
    auto entries = journal.ok() ? load(**journal) : Result<Entries>(journal.status());
    if (!entries.ok()) {
      ++refused;
      continue;
    }
    // What is read is what was written: the flip was where nothing is.
    EXPECT_LE(entries->size(), 50u);
    for (const auto& [key, value] : *entries)
      EXPECT_EQ(value, std::string(300, 'v')) << "byte " << at;
  }
  EXPECT_GT(refused, 20u);
}

/// A process that records numbers until it is killed, and says which ones are recorded.
int record_for_ever(const fs::path& folder, int pipe) {
  EventLoop loop;
  auto journal = SqliteJournal::open(loop, folder);
  if (!journal.ok()) return 1;
  int begun = 0;
  auto next = std::make_shared<std::function<void()>>();
  *next = [&, next] {
    const int number = begun++;
    (*journal)->write(
        {{"n/" + std::to_string(number), std::to_string(number)}, {"last", std::to_string(number)}},
        [&, number, next] {
          if (::write(pipe, &number, sizeof number) != sizeof number) ::_exit(2);
          (*next)();
        });
  };
  loop.post([&] {
    for (int i = 0; i < 8; ++i) (*next)();
  });
  Event never(loop);
  loop.run_until(never, deadline_after(std::chrono::seconds(60)));
  return 3;
}

TEST_F(SqliteJournalTest, LosesNothingThatWasAcknowledgedToKillMinusNine) {
  int most = -1;
  for (int round = 0; round < 8; ++round) {
    fs::remove_all(folder_);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    loop_.reset();  // its thread: the child of a process with several may not start any, says the
                    // thread sanitizer
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(record_for_ever(folder_, ends[1]));
    loop_ = std::make_unique<EventLoop>();
    ::close(ends[1]);
    int acknowledged = -1, number = 0;
    const auto until = steady_now() + std::chrono::milliseconds(20 + 37 * round);
    while (steady_now() < until && ::read(ends[0], &number, sizeof number) == sizeof number)
      acknowledged = number;
    ::kill(child, SIGKILL);
    while (::read(ends[0], &number, sizeof number) == sizeof number) acknowledged = number;
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    if (acknowledged < 0) continue;
    const Entries entries = contents();
    const int last = std::stoi(entries.at("last"));
    EXPECT_GE(last, acknowledged);
    for (int i = 0; i <= last; ++i)
      EXPECT_TRUE(entries.contains("n/" + std::to_string(i))) << i << " of " << last;
    EXPECT_EQ(entries.size(), static_cast<std::size_t>(last) + 2);
    most = std::max(most, acknowledged);
  }
  EXPECT_GT(most, 5);
}

TEST_F(SqliteJournalTest, DropsATornTailAndNothingElse) {
  const fs::path copy = temporary_.path() / "copy";
  fs::create_directories(copy);
  {
    auto journal = open();
    for (int i = 0; i < 10; ++i)
      ASSERT_TRUE(write(*journal, {{"n/" + std::to_string(i), std::string(100, 'x')}}));
    // As after a power cut: the log is there up to some byte.
    fs::copy_file(file(), copy / "journal.db");
    fs::copy_file(folder_ / "journal.db-wal", copy / "journal.db-wal");
  }
  const auto whole = fs::file_size(copy / "journal.db-wal");
  ASSERT_GT(whole, 9000u);
  folder_ = copy;
  const auto torn = [&] {
    std::ifstream in(copy / "journal.db-wal", std::ios::binary);
    return torn_bytes(std::string{std::istreambuf_iterator<char>(in), {}});
  };
  EXPECT_EQ(torn(), 0u);
  fs::resize_file(copy / "journal.db-wal", whole - 2000);
  EXPECT_EQ(torn(), 24 + 4096 - 2000u);
  const Entries entries = contents();
  EXPECT_GE(entries.size(), 8u);
  EXPECT_LT(entries.size(), 10u);
  for (std::size_t i = 0; i < entries.size(); ++i)
    EXPECT_TRUE(entries.contains("n/" + std::to_string(i))) << i;
}

TEST_F(SqliteJournalTest, RefusesALinkWhoseLogLiesElsewhere) {
  ASSERT_TRUE(write(*open(), {{"a", "1"}}));
  const fs::path elsewhere = temporary_.path() / "elsewhere.db";
  fs::rename(file(), elsewhere);
  fs::create_symlink(elsewhere, file());
  EXPECT_EQ(open_error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(open_error().message().find("is a link"), std::string::npos);
}

TEST_F(SqliteJournalTest, RefusesAByteThatFlippedInTheMidstOfTheLog) {
  support::TemporaryFolder elsewhere;
  const std::string copy = elsewhere.file("log");
  {
    auto journal = open();
    for (int i = 0; i < 50; ++i)
      ASSERT_TRUE(write(*journal, {{"key-" + std::to_string(i), std::string(300, 'v')}}));
    fs::copy_file(log(), copy);  // closing puts all into the database and removes it
    fs::copy_file(file(), elsewhere.file("database"));
  }
  std::ifstream in(copy, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(whole.size(), 32u + 20 * 4120u);
  EXPECT_TRUE(check_write_ahead_log(whole).ok());
  const auto open_with = [&](const std::string& bytes) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::copy_file(elsewhere.file("database"), file());
    std::ofstream(log(), std::ios::binary) << bytes;
    return SqliteJournal::open(*loop_, folder_).status();
  };
  EXPECT_TRUE(open_with(whole).ok());
  for (std::size_t at : {whole.size() / 2, whole.size() / 4 + 4, std::size_t{32 + 4120 + 17}}) {
    std::string bytes = whole;
    bytes[at] ^= 0x10;
    const Status status = open_with(bytes);
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument) << at;
    EXPECT_NE(status.message().find("of its log is damaged"), std::string::npos)
        << status.to_string();
    EXPECT_NE(status.message().find("put a copy in its place"), std::string::npos)
        << status.to_string();
  }
  // The last transaction alone may be torn: it was not acknowledged.
  std::string torn = whole;
  torn[torn.size() - 100] ^= 0x10;
  EXPECT_TRUE(open_with(torn).ok());
  EXPECT_TRUE(open_with(whole.substr(0, whole.size() - 1000)).ok());
}

TEST_F(SqliteJournalTest, WaitsForRoomOnAFullDisk) {
  fs::create_directories(folder_);
  if (::mount("none", folder_.c_str(), "tmpfs", 0, "size=4m") != 0)
    GTEST_SKIP() << "needs the right to mount a tmpfs";
  {
    auto journal = open();
    ASSERT_TRUE(write(*journal, {{"first", "1"}}));
    std::ofstream(folder_ / "ballast")
        << std::string(8 << 20, 'x');  // as much as there is room for
    EXPECT_TRUE(journal->trouble().ok());
    auto recorded = std::make_shared<Event>(*loop_);
    // More than the reserve.
    journal->write({{"large", std::string(1500 << 10, 'y')}}, [recorded] { recorded->set(); });
    EXPECT_TRUE(support::eventually([&] { return !journal->trouble().ok(); }));
    EXPECT_EQ(journal->trouble().code(), ErrorCode::kResourceExhausted);
    EXPECT_NE(journal->trouble().message().find("disk is full"), std::string::npos)
        << journal->trouble().message();
    EXPECT_NE(journal->trouble().message().find(file().string()), std::string::npos);
    EXPECT_FALSE(recorded->is_set());
    fs::remove(folder_ / "ballast");
    EXPECT_TRUE(loop_->run_until(*recorded, deadline_after(std::chrono::seconds(10))));
    EXPECT_TRUE(journal->trouble().ok());
    auto entries = load(*journal);
    ASSERT_TRUE(entries.ok());
    EXPECT_EQ(entries->at("first"), "1");
    EXPECT_EQ(entries->at("large").size(), 1500u << 10);
  }
  EXPECT_EQ(contents().size(), 2u);
  ::umount(folder_.c_str());
}

TEST_F(SqliteJournalTest, WritesAFullDiskFromItsReserveAndOpensOnIt) {
  fs::create_directories(folder_);
  if (::mount("none", folder_.c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "needs the right to mount";
  const auto fill = [&] { std::ofstream(folder_ / "ballast") << std::string(16 << 20, 'x'); };
  {
    auto journal = open();
    ASSERT_TRUE(write(*journal, {{"first", "1"}}));
    EXPECT_TRUE(journal->scarcity().ok());
    fill();
    // Many more than its log would have room for.
    for (int i = 0; i < 1000; ++i) {
      const std::string value = std::to_string(i) + std::string(1000, 'j');
      ASSERT_TRUE(write(*journal, {{"job " + std::to_string(i % 50), value}}))
          << i << ": " << journal->trouble().message();
    }
    EXPECT_TRUE(journal->trouble().ok());
    EXPECT_EQ(journal->scarcity().code(), ErrorCode::kResourceExhausted);
    EXPECT_NE(journal->scarcity().message().find(folder_.string()), std::string::npos)
        << journal->scarcity().message();
  }
  fill();  // what closing has made free
  {
    auto journal = open();
    ASSERT_NE(journal, nullptr);
    EXPECT_EQ(journal->scarcity().code(), ErrorCode::kResourceExhausted);
    ASSERT_TRUE(write(*journal, {{"last", "2"}}));
    fs::remove(folder_ / "ballast");
    // Also while there is always something to write.
    bool written = true;
    EXPECT_TRUE(support::eventually([&] {
      written = written && write(*journal, {{"last", "3"}});
      return journal->scarcity().ok();
    })) << journal->scarcity().message();
    EXPECT_TRUE(written);
    const std::uint64_t reserve = fs::file_size(folder_ / "reserve");
    EXPECT_GT(reserve + 4096, share_of(*disk_space(folder_), reserve, 4)) << "it is whole again";
  }
  EXPECT_EQ(contents().size(), 52u);
  ::umount(folder_.c_str());
}

TEST_F(SqliteJournalTest, RefusesAFolderThatCannotBe) {
  std::ofstream(temporary_.path() / "file") << "x";
  folder_ = temporary_.path() / "file" / "journal";
  const Status refused = open_error();
  EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("file/journal"), std::string::npos) << refused.message();
}

}  // namespace
}  // namespace runtime
