// A head's journal that is not what it should be, as the command tells it.
#include <fstream>

#include "fixture.h"

namespace runtime::test {
namespace {

namespace fs = std::filesystem;

class JournalTest : public NetworkTest {
 protected:
  /// A cluster with a journal of which `tally-0` is part, stopped in order.
  void make_journal() {
    start_here({.machines = 1, .arguments = {"--num-cpus", "4"}});
    begin_load(0, {.tallies = 1, .per_second = 50, .kinds = "a"});
    ASSERT_TRUE(eventually([&] { return count_ok(history(), Op::kAdd, 0, INT64_MAX) > 20; }, 40s));
    end_loads();
  }
  std::string read(const fs::path& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const fs::path& path, const std::string& bytes) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  fs::path database() const { return cluster_->journal() / "journal.db"; }
  /// `starling start --head` on the journal, which has to fail; what it says.
  std::string refusal() {
    const Finished started =
        cluster_->starling(0, {"start", "--head", "--port", std::to_string(free_port()),
                               "--journal", cluster_->journal().string()});
    EXPECT_EQ(started.code, 1) << started.output;
    if (started.code == 0) cluster_->starling(0, {"stop", "--force"});
    return started.output;
  }
  void expect_refused(const std::vector<std::string>& parts) {
    const std::string text = refusal();
    for (const std::string& part : parts)
      EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  }
};

TEST_F(JournalTest, HasOneHead) {
  make_journal();
  expect_refused({"in use by another head", cluster_->journal().string()});
  EXPECT_EQ(cluster_->members(0), 1) << "the first one goes on";
  expect_promises_kept(0);
}

TEST_F(JournalTest, OfANewerVersionIsRefused) {
  make_journal();
  cluster_->stop();
  std::string bytes = read(database());
  ASSERT_GT(bytes.size(), 64u);
  bytes[62] = 7;  // in SQLite's header: the user version, 1,792 and more
  write(database(), bytes);
  expect_refused({"newer version", "start the newer version"});
}

TEST_F(JournalTest, WithAFlippedByteIsRefused) {
  make_journal();
  cluster_->stop();
  std::string bytes = read(database());
  const std::size_t at = bytes.find("tally-0");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 2] ^= 0x20;
  write(database(), bytes);
  expect_refused({"damaged", "put a copy in its place"});
}

TEST_F(JournalTest, ThatIsNoDatabaseIsRefused) {
  make_journal();
  cluster_->stop();
  write(database(), std::string(8192, 'x'));
  expect_refused({"damaged", "put a copy in its place"});
}

TEST_F(JournalTest, WithATornTailGoesOn) {
  make_journal();
  const std::int64_t killed = now_us();
  cluster_->kill_node(0);
  ASSERT_TRUE(eventually([&] { return fs::exists(database().string() + "-wal"); }));
  // The last thing that a machine without power wrote was a part of a transaction that had not been
  // reported.
  const fs::path log = database().string() + "-wal";
  std::string bytes = read(log);
  ASSERT_GT(bytes.size(), 32u + 4120u);
  write(log, bytes + bytes.substr(bytes.size() - 4120, 3000));
  expect_started(0);
  begin_load(0, {.tallies = 1, .per_second = 50, .kinds = "a"});
  ASSERT_TRUE(eventually([&] { return first_ok(history(), Op::kAdd, killed) > 0; }, 40s))
      << history().excerpt(INT64_MAX - 1, 20);
  end_loads();
  expect_promises_kept(0);
}

}  // namespace
}  // namespace runtime::test
