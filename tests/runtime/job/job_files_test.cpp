// Files that jobs bring along: looking through a folder, shipping it, unpacking it, and what must
// not get through.
#include "runtime/job/job_files.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "runtime/job/job_folder.h"
#include "runtime/process/cache_folder.h"
#include "runtime/process/content_hash.h"
#include "runtime/process/file_util.h"
#include "runtime/process/job_user.h"
#include "runtime/transport/blocking.h"
#include "tests/support/file_clock.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

std::string hash_of(const std::string& text) {
  ContentHash hash;
  hash.add(text);
  return hash.finish();
}

std::vector<std::string> paths(const JobFolderScan& scan) {
  std::vector<std::string> found;
  for (const JobFile& file : scan.files) found.push_back(file.path);
  return found;
}

class JobFolder : public ::testing::Test {
 protected:
  void expect_refused(const std::string& name, const std::string& why) {
    auto scan = scan_job_folder(folder_.path());
    ASSERT_FALSE(scan.ok());
    EXPECT_EQ(scan.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(scan.status().message().find("'" + name + "'"), std::string::npos)
        << scan.status().message();
    EXPECT_NE(scan.status().message().find(why), std::string::npos) << scan.status().message();
    // What is named there is left out.
    write(folder_.path() / ".starlingignore", name + "\n");
    EXPECT_TRUE(scan_job_folder(folder_.path()).ok());
  }
  support::TemporaryFolder folder_;
};

TEST_F(JobFolder, ListsWhatIsThere) {
  write(folder_.path() / "a.txt", "a");
  write(folder_.path() / "sub/run", "#!");
  write(folder_.path() / ".git/config", "left out");
  fs::create_directory(folder_.path() / "empty");
  fs::permissions(folder_.path() / "sub/run", fs::perms::owner_exec, fs::perm_options::add);
  fs::create_symlink("../a.txt", folder_.path() / "sub/link");
  auto scan = scan_job_folder(folder_.path());
  ASSERT_TRUE(scan.ok()) << scan.status().message();
  EXPECT_EQ(paths(*scan),
            (std::vector<std::string>{"a.txt", "empty", "sub", "sub/link", "sub/run"}));
  EXPECT_EQ(scan->bytes, 3u);
  ASSERT_TRUE(hash_files(*scan).ok());
  EXPECT_EQ(scan->files[0].hash, hash_of("a"));
  EXPECT_EQ(scan->files[3].target, "../a.txt");
  EXPECT_TRUE(scan->files[4].executable);
  EXPECT_EQ(largest_files(*scan, 1), "sub/run (2 bytes)");
}

TEST_F(JobFolder, LinksThatLeadOutAreTakenAlong) {
  support::TemporaryFolder other;
  write(other.path() / "data", "content");
  fs::create_symlink(other.path() / "data", folder_.path() / "file");
  fs::create_symlink(other.path(), folder_.path() / "whole");
  auto scan = scan_job_folder(folder_.path());
  ASSERT_TRUE(scan.ok()) << scan.status().message();
  EXPECT_EQ(paths(*scan), (std::vector<std::string>{"file", "whole", "whole/data"}));
  EXPECT_EQ(scan->files[0].kind, JobFile::Kind::kFile);
}

TEST_F(JobFolder, RefusesASocket) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, folder_.file("x.sock").c_str());
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  expect_refused("x.sock", "is a socket");
  ::close(socket);
}

TEST_F(JobFolder, RefusesAPipe) {
  ASSERT_EQ(::mkfifo(folder_.file("pipe").c_str(), 0600), 0);
  expect_refused("pipe", "is a named pipe");
}

TEST_F(JobFolder, RefusesALoopOfLinks) {
  fs::create_symlink("loop", folder_.path() / "loop");
  expect_refused("loop", "is a loop of links");
}

TEST_F(JobFolder, RefusesALinkToAFolderAroundIt) {
  fs::create_directory(folder_.path() / "sub");
  fs::create_symlink(folder_.path(), folder_.path() / "sub/up");  // absolute: it would be followed
  auto scan = scan_job_folder(folder_.path());
  ASSERT_FALSE(scan.ok());
  EXPECT_NE(scan.status().message().find("'sub/up' is a loop of links"), std::string::npos)
      << scan.status().message();
}

TEST_F(JobFolder, LeavesOutWhatIsNamedAtAnyDepth) {
  for (const char* file : {"top.key", "a/one.key", "a/b/two.key", "a/deep", "a/b/c/deep",
                           ".git/config", "a/.git/config", "a/keep", "links/secrets/x"})
    write(folder_.path() / file, "x");
  const support::TemporaryFolder outside;
  write(outside.path() / "inner", "x");
  fs::create_directory_symlink(outside.path(), folder_.path() / "outside");
  write(folder_.path() / ".starlingignore", "**/*.key\na/**/deep\noutside/\nlinks/\n!.git\n");
  write(folder_.path() / "a/.starlingignore", "!/one.key\n/b/*\n!c\n");
  auto scan = scan_job_folder(folder_.path());
  ASSERT_TRUE(scan.ok()) << scan.status().message();
  EXPECT_EQ(paths(*scan), (std::vector<std::string>{".starlingignore", "a", "a/.starlingignore",
                                                    "a/b", "a/b/c", "a/keep", "a/one.key"}));
}

TEST_F(JobFolder, AFileThatChangedWhileItWasReadIsNamed) {
  write(folder_.path() / "chg", "short");
  auto scan = scan_job_folder(folder_.path());
  ASSERT_TRUE(scan.ok()) << scan.status().message();
  write(folder_.path() / "chg", "much longer");
  const Status status = hash_files(*scan);
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  for (const char* part : {"/chg changed while it was being read", "from 5 to 11 bytes", "submit"})
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

/// A node's files, driven by hand.
class JobFilesTest : public ::testing::Test {
 protected:
  JobFilesTest() {
    JobFilesOptions options;
    options.cache = folder_.path() / "files";
    options.folders = folder_.path() / "jobs/n1";
    options.job_bytes_max = 1000;
    options.job_files_max = 10;
    options.cache_bytes_max = 1500;
    options.user_bytes_max = 25;
    files_ = std::make_unique<JobFiles>(loop_, options);
  }
  ~JobFilesTest() override { loop_.stop(); }

  Status store(const std::string& hash, std::uint64_t bytes, std::uint64_t offset,
               const std::string& data, std::uint64_t sender = 1) {
    return wait_done(loop_, deadline_after(std::chrono::seconds(10)), [&](auto done) {
      loop_.post([=, this] { files_->store(sender, {hash, bytes, offset, data}, done); });
    });
  }
  Status store(const std::string& text) { return store(hash_of(text), text.size(), 0, text); }
  Result<control::FilesWanted> offer(std::uint64_t bytes, std::uint64_t count,
                                     std::vector<std::string> hashes) {
    return wait_for<control::FilesWanted>(
        loop_, deadline_after(std::chrono::seconds(10)), [&](auto done) {
          loop_.post([=, this] { files_->offer({bytes, count, hashes}, done); });
        });
  }
  Result<runtime::JobFolder> unpack(JobId job, std::vector<JobFile> files, JobFile program = {}) {
    return wait_for<runtime::JobFolder>(
        loop_, deadline_after(std::chrono::seconds(10)), [&](auto done) {
          loop_.post([=, this] { files_->unpack(job, files, program, std::nullopt, done); });
        });
  }
  /// Besides the mark.
  std::ptrdiff_t cached_files() const {
    const fs::path files = folder_.path() / "files";
    return std::distance(fs::directory_iterator(files), {}) - fs::exists(files / kCacheMark);
  }
  static JobFile file(const std::string& path, const std::string& text, bool executable = false) {
    return {path, JobFile::Kind::kFile, executable, text.size(), hash_of(text), ""};
  }

  support::TemporaryFolder folder_;
  EventLoop loop_;
  std::unique_ptr<JobFiles> files_;
};

TEST_F(JobFilesTest, TakesWhatItLacksAndMakesAFolderOfIt) {
  auto wanted = offer(6, 2, {hash_of("one"), hash_of("two")});
  ASSERT_TRUE(wanted.ok());
  EXPECT_EQ(wanted->places, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_TRUE(store(hash_of("one"), 3, 0, "o").ok());
  EXPECT_TRUE(store(hash_of("one"), 3, 1, "ne").ok());
  EXPECT_TRUE(store("two").ok());
  EXPECT_TRUE(store("").ok());
  EXPECT_TRUE(offer(6, 2, {hash_of("one"), hash_of("two")})->places.empty());
  const JobId job = JobId::random();
  auto made = unpack(job,
                     {file("a/b/one", "one"),
                      file("empty", ""),
                      {"a/link", JobFile::Kind::kLink, false, 0, "", "b/one"},
                      {"c", JobFile::Kind::kFolder, false, 0, "", ""}},
                     file("driver", "two", true));
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(*read_file(made->work / "a/link", 100), "one");
  EXPECT_EQ(*read_file(made->work / "empty", 100), "");
  EXPECT_TRUE(fs::is_directory(made->work / "c"));
  EXPECT_EQ(::access(made->program.c_str(), X_OK), 0);
  EXPECT_NE(made->program.parent_path(), made->work);
  loop_.post([&] { files_->release(job); });
  (void)offer(0, 0, {});  // after it
  EXPECT_FALSE(fs::exists(made->work.parent_path()));
}

TEST_F(JobFilesTest, RefusesPathsThatLeadOut) {
  ASSERT_TRUE(store("one").ok());
  for (const char* path : {"../x", "/etc/x", "a/../../x", "a//x", "./x", "", "a/", "."}) {
    EXPECT_EQ(unpack(JobId::random(), {file(path, "one")}).status().code(),
              ErrorCode::kInvalidArgument)
        << path;
  }
  EXPECT_EQ(unpack(JobId::random(), {file(std::string("a\0b", 3), "one")}).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(unpack(JobId::random(), {}, file("a/b", "one")).status().code(),
            ErrorCode::kInvalidArgument);
  // Not through a link either.
  support::TemporaryFolder other;
  auto through = unpack(
      JobId::random(),
      {{"out", JobFile::Kind::kLink, false, 0, "", other.path().string()}, file("out/x", "one")});
  EXPECT_FALSE(through.ok());
  EXPECT_TRUE(fs::is_empty(other.path()));
  EXPECT_FALSE(unpack(JobId::random(), {file("x", "one"), file("x/y", "one")}).ok());
}

// Who owned a part of a job's folder while it is filled could have a node of root write elsewhere.
// It is made again, and given away when it is full.
TEST_F(JobFilesTest, AFolderThatIsThereAlreadyIsNotUsed) {
  ASSERT_TRUE(store("one").ok());
  const JobId job = JobId::random();
  auto first = unpack(job, {file("x", "one")});
  ASSERT_TRUE(first.ok()) << first.status().message();
  support::TemporaryFolder elsewhere;
  fs::remove_all(first->work);
  fs::create_directory_symlink(elsewhere.path(), first->work);
  auto again = unpack(job, {file("x", "one"), file("sub/y", "one")});
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(fs::is_empty(elsewhere.path()));
  EXPECT_EQ(*read_file(again->work / "sub/y", 100), "one");
}

TEST_F(JobFilesTest, GivesAllOfTheFolderToTheJobsUser) {
  auto nobody = find_user("nobody");
  if (::geteuid() != 0 || !nobody.ok()) GTEST_SKIP() << "only root can give a folder away";
  ASSERT_TRUE(store("one").ok());
  auto made =
      wait_for<runtime::JobFolder>(loop_, deadline_after(std::chrono::seconds(10)), [&](auto done) {
        loop_.post([=, this] {
          files_->unpack(JobId::random(), {file("sub/x", "one")}, file("program", "one"), *nobody,
                         done);
        });
      });
  ASSERT_TRUE(made.ok()) << made.status().message();
  for (const fs::path& path : {made->work.parent_path(), made->work, made->work / "sub",
                               made->work / "sub/x", made->program}) {
    struct stat info {};
    ASSERT_EQ(::lstat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_uid, nobody->uid) << path;
  }
}

TEST_F(JobFilesTest, AUsersFoldersHaveAShareOfTheDisk) {
  auto nobody = find_user("nobody"), games = find_user("games");
  if (::geteuid() != 0 || !nobody.ok() || !games.ok())
    GTEST_SKIP() << "only root can give a folder away";
  ASSERT_TRUE(store("0123456789").ok());
  const auto unpack = [&](JobId job, std::optional<JobUser> owner) {
    return wait_for<runtime::JobFolder>(loop_, deadline_after(std::chrono::seconds(10)),
                                        [&](auto done) {
                                          loop_.post([=, this] {
                                            files_->unpack(job, {file("x", "0123456789")}, {},
                                                           owner, done);
                                          });
                                        })
        .status();
  };
  const JobId first = JobId::random();
  EXPECT_TRUE(unpack(first, *nobody).ok());
  EXPECT_TRUE(unpack(JobId::random(), *nobody).ok());
  const Status refused = unpack(JobId::random(), *nobody);
  EXPECT_EQ(refused.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("nobody's jobs"), std::string::npos) << refused.message();
  EXPECT_TRUE(unpack(JobId::random(), *games).ok());
  EXPECT_TRUE(unpack(JobId::random(), std::nullopt).ok());
  loop_.post([this, first] { files_->release(first); });
  EXPECT_TRUE(unpack(JobId::random(), *nobody).ok());
}

TEST_F(JobFilesTest, ASenderHasFewUnfinishedFiles) {
  Status status;
  int begun = 0;
  for (; begun < 100 && status.ok(); ++begun)
    status = store(hash_of(std::to_string(begun)), 10, 0, "x", /*sender=*/7);
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted) << begun;
  EXPECT_LT(begun, 20);
  EXPECT_TRUE(store(hash_of("a"), 1, 0, "a", /*sender=*/8).ok()) << "of another sender";
}

TEST_F(JobFilesTest, RefusesTooMuch) {
  EXPECT_EQ(offer(1001, 1, {}).status().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(offer(10, 11, {}).status().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(store(hash_of("x"), 1001, 0, "x").code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(unpack(JobId::random(), std::vector<JobFile>(11, file("x", "x"))).status().code(),
            ErrorCode::kResourceExhausted);
  JobFile lie = file("x", "x");
  lie.bytes = ~0ull;
  EXPECT_EQ(unpack(JobId::random(), {lie, lie}).status().code(), ErrorCode::kResourceExhausted);
}

TEST_F(JobFilesTest, RefusesContentThatIsNotThatOfTheHash) {
  EXPECT_EQ(store(hash_of("one"), 3, 0, "two").code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(store("../../x", 3, 0, "two").code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(store(hash_of("one"), 3, 1, "ne").code(),
            ErrorCode::kInvalidArgument);  // without its beginning
  EXPECT_TRUE(store(hash_of("one"), 3, 0, "o").ok());
  EXPECT_EQ(store(hash_of("one"), 3, 1, "nexx").code(), ErrorCode::kInvalidArgument);  // too much
  EXPECT_EQ(offer(3, 1, {hash_of("one")})->places.size(), 1u);
  EXPECT_EQ(cached_files(), 0);
}

TEST_F(JobFilesTest, AnUnfinishedFileGoesWithItsSender) {
  EXPECT_TRUE(store(hash_of("one"), 3, 0, "o", 7).ok());
  loop_.post([&] { files_->forget(7); });
  EXPECT_EQ(store(hash_of("one"), 3, 1, "ne", 7).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(cached_files(), 0);
}

TEST_F(JobFilesTest, ADamagedFileIsNoticedAndDropped) {
  ASSERT_TRUE(store("one").ok());
  write(folder_.path() / "files" / hash_of("one"), "two");
  const JobId job = JobId::random();
  EXPECT_EQ(unpack(job, {file("x", "one")}).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(offer(3, 1, {hash_of("one")})->places.size(), 1u);
  EXPECT_FALSE(fs::exists(folder_.path() / "jobs/n1" / job.hex()));
}

// As when it grew between the look at its size and the reading.
TEST_F(JobFilesTest, AFileThatChangedIsNotBlamedOnTheCache) {
  ASSERT_TRUE(store("one").ok());
  JobFile changed = file("deep/x", "one");
  changed.bytes = 2;
  const Status status = unpack(JobId::random(), {changed}).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  for (const char* part : {"'deep/x' changed while it was being read", "from 2 to 3 bytes"})
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  EXPECT_TRUE(offer(3, 1, {hash_of("one")})->places.empty()) << "it is still in the cache";
}

TEST_F(JobFilesTest, TheCacheIsBounded) {
  for (char letter : {'a', 'b', 'c'}) {
    const std::string text(700, letter);
    ASSERT_TRUE(store(text).ok());
    ASSERT_TRUE(unpack(JobId::random(), {file("x", text)}).ok());
    ASSERT_TRUE(support::await_file_clock());  // the next one is newer
  }
  EXPECT_EQ(offer(0, 0, {hash_of(std::string(700, 'a')), hash_of(std::string(700, 'c'))})->places,
            (std::vector<std::uint32_t>{0}));
}

TEST_F(JobFilesTest, WhatDeadNodesHaveBegunGoes) {
  const fs::path files = folder_.path() / "files";
  ASSERT_TRUE(make_cache_folder(files).ok());
  write(files / (hash_of("dead") + ".part-0badcafe"), "half");
  EXPECT_TRUE(store(hash_of("one"), 3, 0, "o").ok());
  loop_.post([&] { files_->trim(); });
  (void)offer(0, 0, {});  // after it
  EXPECT_FALSE(fs::exists(files / (hash_of("dead") + ".part-0badcafe")));
  EXPECT_TRUE(store(hash_of("one"), 3, 1, "ne").ok()) << "what this node has begun stays";
}

TEST_F(JobFilesTest, WhatASubmissionWasToldIsThereStaysUntilItIsUnpacked) {
  const std::string first(700, 'a');
  ASSERT_TRUE(store(first).ok());
  ASSERT_TRUE(unpack(JobId::random(), {file("x", first)}).ok());
  ASSERT_TRUE(offer(700, 1, {hash_of(first)})->places.empty());
  for (char letter : {'b', 'c', 'd'}) {  // other jobs in between
    const std::string text(700, letter);
    ASSERT_TRUE(store(text).ok());
    ASSERT_TRUE(unpack(JobId::random(), {file("x", text)}).ok());
  }
  const auto made = unpack(JobId::random(), {file("x", first)});
  EXPECT_TRUE(made.ok()) << made.status().message();
}

TEST_F(JobFilesTest, RemovesFoldersOfNodesThatAreGone) {
  const fs::path jobs = folder_.path() / "jobs";
  for (const fs::path& marked : {jobs, jobs / "crashed"})
    ASSERT_TRUE(make_cache_folder(marked).ok());
  write(jobs / "crashed/.lock", "");
  write(jobs / "crashed/j" / "work" / "x", "");
  write(jobs / "mywork/.lock", "");  // of some other program
  write(jobs / "mywork/results.csv", "1,2");
  ASSERT_TRUE(unpack(JobId::random(), {}).ok());
  EXPECT_FALSE(fs::exists(jobs / "crashed"));
  EXPECT_TRUE(fs::exists(jobs / "mywork/results.csv"));
  files_.reset();
  EXPECT_FALSE(fs::exists(folder_.path() / "jobs/n1"));
}

// What a user has at the places of our caches.
TEST_F(JobFilesTest, FoldersThatAreNotOursAreRefusedAsTheyAre) {
  const fs::path jobs = folder_.path() / "jobs";
  write(jobs / "mywork/.lock", "");
  write(jobs / "mywork/x", "1");
  fs::permissions(jobs, fs::perms::owner_all);
  const auto made = unpack(JobId::random(), {});
  EXPECT_EQ(made.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(made.status().message().find(jobs.string() + " is not empty"), std::string::npos)
      << made.status().message();
  EXPECT_TRUE(fs::exists(jobs / "mywork/x"));
  EXPECT_EQ(fs::status(jobs).permissions(), fs::perms::owner_all);

  const fs::path files = folder_.path() / "files";
  write(files / hash_of("one"), "two");  // as a damaged file of ours would be
  for (const Status& refused : {store("one"), offer(3, 1, {hash_of("one")}).status()}) {
    EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(refused.message().find(files.string() + " is not empty"), std::string::npos)
        << refused.message();
  }
  EXPECT_FALSE(unpack(JobId::random(), {file("x", "one")}).ok());
  EXPECT_EQ(*read_file(files / hash_of("one"), 100), "two");
}

TEST_F(JobFilesTest, AFolderThatWasThereIsNotOpenedForOtherUsers) {
  fs::create_directory(folder_.path() / "jobs");
  fs::permissions(folder_.path() / "jobs", fs::perms::owner_all);
  ASSERT_TRUE(unpack(JobId::random(), {}).ok());
  EXPECT_EQ(fs::status(folder_.path() / "jobs").permissions(), fs::perms::owner_all);
  JobUser other;
  other.uid = ::geteuid(), other.gid = ::getegid();
  const auto refused =
      wait_for<runtime::JobFolder>(loop_, deadline_after(std::chrono::seconds(10)), [&](auto done) {
        loop_.post([=, this] { files_->unpack(JobId::random(), {}, {}, other, done); });
      });
  EXPECT_NE(refused.status().message().find("chmod 711"), std::string::npos)
      << refused.status().message();
}

TEST(JobUser, IsRefusedUnlessSomethingProvesIt) {
  PeerInfo peer;
  peer.address = "203.0.113.7:4000";
  EXPECT_EQ(peer_user(peer, "127.0.0.1:6399"), std::nullopt);
  peer.address = "127.0.0.1:1";  // no user's connection
  EXPECT_EQ(peer_user(peer, "127.0.0.1:6399"), std::nullopt);
  auto unknown = choose_job_user(peer, "127.0.0.1:6399", "");
  if (::geteuid() == 0) {
    EXPECT_EQ(unknown.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(unknown.status().message().find("--job-user"), std::string::npos);
    EXPECT_TRUE(choose_job_user(peer, "127.0.0.1:6399", "root").ok());
    EXPECT_EQ(choose_job_user(peer, "127.0.0.1:6399", "no-such-user").status().code(),
              ErrorCode::kNotFound);
  } else {
    EXPECT_TRUE(unknown.ok());
  }
  peer.address = "unix:/x";
  peer.uid = ::geteuid();
  auto own = choose_job_user(peer, "127.0.0.1:6399", "");
  ASSERT_TRUE(own.ok());
  EXPECT_FALSE(own->has_value());
}

}  // namespace
}  // namespace runtime
