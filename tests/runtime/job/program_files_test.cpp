#include "runtime/job/program_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "runtime/control/control_channel.h"
#include "runtime/control/control_codec.h"
#include "runtime/process/cache_folder.h"
#include "runtime/process/file_util.h"
#include "runtime/transport/blocking.h"
#include "runtime/transport/listener.h"
#include "tests/support/eventually.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

/// A driver's node that offers one program, and another node that wants it.
class ProgramFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // More than two chunks, and no repetition that would hide one taken twice.
    std::string content;
    for (int i = 0; content.size() < (9u << 20); ++i) content += std::to_string(i) + ",";
    ASSERT_TRUE(write_file_atomic(program_, content, 0700).ok());
    driver_.executable = {program_.string(), content.size(), *hash_file(program_)};
    on_loop([&] {
      offering_ = std::make_unique<ProgramFiles>(loop_, credentials_,
                                                 FileCacheOptions{folder_.path() / "a"});
      wanting_ = std::make_unique<ProgramFiles>(loop_, credentials_,
                                                FileCacheOptions{folder_.path() / "b"});
      offering_->offer(driver_);
    });
    ListenerCallbacks callbacks;
    callbacks.on_channel = [this](std::shared_ptr<Channel> channel) {
      channel->set_handler([this](const std::shared_ptr<Channel>& from, Message message) {
        ControlAnswerer answer = answerer_for(from, message);
        auto request = decode_control_request(message.meta);
        ASSERT_TRUE(request.ok());
        auto& fetch = std::get<control::FetchFile>(request->body);
        auto bytes = offering_->read(fetch.hash, fetch.offset);
        ++chunks_;
        if (bytes.ok())
          answer(ControlAnswer{std::move(*bytes)});
        else
          answer(bytes.status());
      });
      channels_.push_back(std::move(channel));
    };
    auto listener = Listener::listen(loop_, Endpoint::tcp("127.0.0.1", 0), credentials_, callbacks);
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    listener_ = std::move(*listener);
  }
  void TearDown() override {
    on_loop([&] {
      listener_->stop();
      for (const auto& channel : channels_) channel->close(cancelled("done"));
      channels_.clear();
      wanting_.reset();
      offering_.reset();
    });
    listener_.reset();
  }
  void on_loop(const std::function<void()>& work) {
    Event done(loop_);
    loop_.post([&] {
      work();
      done.set();
    });
    ASSERT_TRUE(loop_.run_until(done, deadline_after(std::chrono::seconds(10))));
  }
  Result<fs::path> find(const DriverInfo& driver) {
    Deadline deadline = deadline_after(std::chrono::seconds(10));
    auto program = wait_for<LocalProgram>(loop_, deadline, [&](auto found) {
      loop_.post([this, driver, deadline, found] {
        wanting_->find(driver, listener_->endpoint().to_string(), deadline, found);
      });
    });
    if (!program.ok()) return program.status();
    in_use_ = program->in_use;  // as a worker has it while it runs
    return program->path;
  }
  static Credentials make_credentials() {
    Credentials credentials;
    credentials.token = "secret";
    credentials.cluster = ClusterId::random();
    credentials.role = Role::kNode;
    credentials.node = NodeId::random();
    return credentials;
  }

  support::TemporaryFolder folder_;
  fs::path program_ = folder_.path() / "driver";
  Credentials credentials_ = make_credentials();
  EventLoop loop_;
  std::unique_ptr<ProgramFiles> offering_, wanting_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::shared_ptr<Channel>> channels_;
  DriverInfo driver_;
  std::shared_ptr<const FileLock> in_use_;
  int chunks_ = 0;
};

TEST_F(ProgramFilesTest, TheSameFileIsUsedWhereItIs) {
  EXPECT_EQ(*find(driver_), program_);
  EXPECT_EQ(chunks_, 0);
}

TEST_F(ProgramFilesTest, AnotherFileAtThatPathIsNotUsed) {
  DriverInfo elsewhere = driver_;
  elsewhere.executable.path = (folder_.path() / "other").string();
  std::string other(driver_.executable.bytes, 'x');
  ASSERT_TRUE(write_file_atomic(elsewhere.executable.path, other, 0700).ok());
  auto found = find(elsewhere);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_NE(*found, elsewhere.executable.path);
  EXPECT_EQ(*hash_file(*found), driver_.executable.hash);
}

TEST_F(ProgramFilesTest, WhatIsMissingIsFetchedOnceAndRunnable) {
  DriverInfo elsewhere = driver_;
  elsewhere.executable.path = "/nowhere/driver";
  auto found = find(elsewhere);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(*hash_file(*found), driver_.executable.hash);
  EXPECT_EQ(::access(found->c_str(), X_OK), 0);
  EXPECT_EQ(chunks_, 3);
  EXPECT_EQ(*find(elsewhere), *found);
  EXPECT_EQ(chunks_, 3);
}

TEST_F(ProgramFilesTest, ACachedProgramThatIsNotItsHashIsFetchedAgain) {
  DriverInfo elsewhere = driver_;
  elsewhere.executable.path = "/nowhere/driver";
  auto found = find(elsewhere);
  ASSERT_TRUE(found.ok()) << found.status().message();
  // Of the same size, as a planted or damaged one would be.
  ASSERT_TRUE(write_file_atomic(*found, std::string(driver_.executable.bytes, 'x'), 0700).ok());
  found = find(elsewhere);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(*hash_file(*found), driver_.executable.hash);
  EXPECT_EQ(chunks_, 6);
}

TEST_F(ProgramFilesTest, ACacheThatOthersCanWriteToIsNotUsed) {
  DriverInfo elsewhere = driver_;
  elsewhere.executable.path = "/nowhere/driver";
  auto found = find(elsewhere);
  ASSERT_TRUE(found.ok()) << found.status().message();
  fs::permissions(found->parent_path().parent_path(), fs::perms::all);
  EXPECT_EQ(find(elsewhere).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(ProgramFilesTest, AFolderThatIsNotACacheIsNotUsed) {
  DriverInfo elsewhere = driver_;
  elsewhere.executable.path = "/nowhere/driver";
  // The user's own, at the place and with the size of what would be fetched again.
  const fs::path theirs = folder_.path() / "b" / driver_.executable.hash / "driver";
  fs::create_directories(theirs.parent_path());
  ASSERT_TRUE(write_file_atomic(theirs, std::string(driver_.executable.bytes, 'x'), 0700).ok());
  const auto refused = find(elsewhere);
  EXPECT_EQ(refused.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find((folder_.path() / "b").string() + " is not empty"),
            std::string::npos)
      << refused.status().message();
  EXPECT_EQ(read_file(theirs, 100 << 20)->front(), 'x');
}

TEST_F(ProgramFilesTest, AChangedProgramIsAnErrorAndLeavesNothing) {
  DriverInfo elsewhere = driver_;
  elsewhere.executable.path = "/nowhere/driver";
  ASSERT_TRUE(write_file_atomic(program_, std::string(driver_.executable.bytes, 'x'), 0700)
                  .ok());  // after it was offered
  auto found = find(elsewhere);
  EXPECT_EQ(found.status().code(), ErrorCode::kNotFound) << found.status().message();
  EXPECT_NE(found.status().message().find("the program was changed since the driver started"),
            std::string::npos)
      << found.status().message();
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / "b"))
    EXPECT_TRUE(entry.is_directory() || entry.path().filename() == kCacheMark) << entry.path();
}

TEST_F(ProgramFilesTest, AProgramThatRunsIsHadAsItIs) {
  fs::remove(program_);
  fs::copy_file("/bin/sleep", program_);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execl(program_.c_str(), "sleep", "60", nullptr);
    ::_exit(127);
  }
  const fs::path executable = "/proc/" + std::to_string(pid) + "/exe";
  ASSERT_TRUE(support::eventually([&] { return fs::read_symlink(executable) == program_; }));
  driver_.executable = {program_.string(), fs::file_size(program_), *hash_file(program_)};
  driver_.pid = pid;
  for (const bool is_replaced_before : {false, true}) {
    on_loop([&] {
      if (is_replaced_before)
        offering_ = std::make_unique<ProgramFiles>(loop_, credentials_,
                                                   FileCacheOptions{folder_.path() / "c"});
      offering_->offer(driver_);
    });
    ASSERT_TRUE(write_file_atomic(program_, "another program", 0700).ok());
    fs::remove_all(folder_.path() / "b");
    auto fetched = find(driver_);
    ASSERT_TRUE(fetched.ok()) << fetched.status().message();
    EXPECT_EQ(*hash_file(*fetched), driver_.executable.hash);
    std::string found;
    on_loop([&] {
      offering_->find(driver_, "", deadline_after(std::chrono::seconds(1)),
                      [&](const Result<LocalProgram>& program) {
                        if (program.ok()) found = program->path.string();
                      });
    });
    EXPECT_EQ(hash_file(found).value_or(""), driver_.executable.hash) << found;
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST_F(ProgramFilesTest, TheCacheKeepsWhatIsUsedAndGivesUpWhatWasUsedLongestAgo) {
  const fs::path cache = folder_.path() / "d";
  const std::uint64_t bytes = driver_.executable.bytes;
  on_loop([&] {
    FileCacheOptions options;
    options.folder = cache;
    options.bytes_max = 2 * bytes + 100;
    wanting_ = std::make_unique<ProgramFiles>(loop_, credentials_, options);
  });
  const auto make_old = [&](char name, int days) {
    const fs::path file = cache / std::string(32, name) / "driver";
    fs::create_directories(file.parent_path());
    EXPECT_TRUE(write_file_atomic(file, std::string(bytes, name), 0700).ok());
    const timespec used_at{1'700'000'000 - 86400 * days, 0};
    const timespec then[2] = {used_at, used_at};
    EXPECT_EQ(::utimensat(AT_FDCWD, file.c_str(), then, 0), 0);
    return file;
  };
  ASSERT_TRUE(make_cache_folder(cache).ok());
  const fs::path used = make_old('1', 9), old = make_old('2', 8), older = make_old('3', 20);
  const fs::path left = cache / std::string(32, '4') / "driver.part-0badcafe";  // of a dead node
  fs::create_directories(left.parent_path());
  ASSERT_TRUE(write_file_atomic(left, "half", 0700).ok());
  const auto runs = FileLock::shared(used);  // by another node of this machine
  ASSERT_TRUE(runs.ok()) << runs.status().to_string();
  DriverInfo elsewhere = driver_;
  elsewhere.executable.path = "/nowhere/driver";
  auto found = find(elsewhere);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_TRUE(fs::exists(*found));
  EXPECT_TRUE(fs::exists(used)) << "in use, though it is old";
  EXPECT_FALSE(fs::exists(old.parent_path()));
  EXPECT_FALSE(fs::exists(older.parent_path()));
  EXPECT_FALSE(fs::exists(left.parent_path()));
  // What this node uses stays until no process does any more.
  on_loop([&] { FileCache({.folder = cache, .depth = 2, .bytes_max = 0}).trim(); });
  EXPECT_TRUE(fs::exists(*found));
  in_use_.reset();
  on_loop([&] { FileCache({.folder = cache, .depth = 2, .bytes_max = 0}).trim(); });
  EXPECT_FALSE(fs::exists(*found));
  EXPECT_TRUE(find(elsewhere).ok()) << "it is fetched again";
}

TEST_F(ProgramFilesTest, AFullDiskMakesRoomOrIsNamed) {
  const fs::path disk = folder_.path() / "disk";
  fs::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=17m,mode=0700") != 0)
    GTEST_SKIP() << "needs the right to mount";
  ASSERT_TRUE(make_cache_folder(disk / "programs").ok());
  const fs::path old = disk / "programs" / std::string(32, '1') / "driver";
  fs::create_directories(old.parent_path());
  ASSERT_TRUE(write_file_atomic(old, std::string((8 << 20) + (400 << 10), 'x'), 0700).ok());
  on_loop([&] {
    wanting_ =
        std::make_unique<ProgramFiles>(loop_, credentials_, FileCacheOptions{disk / "programs"});
  });
  DriverInfo elsewhere = driver_;
  elsewhere.executable.path = "/nowhere/driver";
  {
    const auto runs = FileLock::shared(old);
    ASSERT_TRUE(runs.ok()) << runs.status().to_string();
    const auto refused = find(elsewhere);
    EXPECT_EQ(refused.status().code(), ErrorCode::kResourceExhausted);
    for (const std::string& named : {(disk / "programs").string(), "disk at " + disk.string()})
      EXPECT_NE(refused.status().message().find(named), std::string::npos)
          << refused.status().message();
    EXPECT_EQ(
        std::distance(fs::directory_iterator(disk / "programs" / driver_.executable.hash), {}), 0);
  }
  const auto found = find(elsewhere);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_FALSE(fs::exists(old));
  EXPECT_EQ(*hash_file(*found), driver_.executable.hash);
  in_use_.reset();
  ::umount2(disk.c_str(), MNT_DETACH);
}

TEST_F(ProgramFilesTest, OnlyOfferedFilesAreServed) {
  DriverInfo unknown = driver_;
  unknown.executable.path = "/nowhere/driver";
  unknown.executable.hash = std::string(32, 'a');
  EXPECT_EQ(find(unknown).status().code(), ErrorCode::kNotFound);
  unknown.executable.hash = "../../etc/passwd";
  EXPECT_EQ(find(unknown).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(ProgramFilesTest, MissingLibrariesAreNamed) {
  DriverInfo driver = driver_;
  driver.libraries = {{"/opt/none/libx.so", 5, ""}};
  auto found = find(driver);
  EXPECT_EQ(found.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(found.status().message().find("/opt/none/libx.so"), std::string::npos);
}

TEST(DescribeThisProgram, IsThisProgram) {
  auto info = describe_this_program();
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->executable.path, fs::read_symlink("/proc/self/exe").string());
  EXPECT_EQ(info->executable.bytes, fs::file_size("/proc/self/exe"));
  EXPECT_EQ(info->executable.hash.size(), 32u);
  ASSERT_FALSE(info->argv.empty());
  EXPECT_EQ(info->pid, ::getpid());
  EXPECT_EQ(info->working_dir, fs::current_path().string());
  for (const FileSpec& library : info->libraries)
    EXPECT_FALSE(library.path.starts_with("/usr/lib/"));
}

}  // namespace
}  // namespace runtime
