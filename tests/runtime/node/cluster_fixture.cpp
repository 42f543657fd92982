#include "tests/runtime/node/cluster_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/process/file_util.h"
#include "runtime/process/session_folder.h"

namespace runtime {

namespace {

/// Reads both pipes until their end, or until `enough` says so.
void drain(int& out, int& err, CommandResult& result, const std::function<bool()>& enough,
           std::chrono::seconds patience) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  while ((out >= 0 || err >= 0) && !enough()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline)
        << "no end in sight; so far: " << result.out << result.err;
    pollfd fds[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
    if (::poll(fds, 2, 100) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].revents == 0) continue;
      char block[8192];
      ssize_t got = ::read(fds[i].fd, block, sizeof block);
      if (got > 0) {
        (i == 0 ? result.out : result.err).append(block, static_cast<std::size_t>(got));
      } else {
        ::close(fds[i].fd);
        (i == 0 ? out : err) = -1;
      }
    }
  }
}

}  // namespace

std::string CommandResult::last_line() const {
  std::string text = out;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

BackgroundCommand::BackgroundCommand(std::vector<std::string> argv) {
  int out[2], err[2];
  EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(err, O_CLOEXEC), 0);
  std::vector<char*> pointers;
  for (std::string& word : argv) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    ::execvp(pointers[0], pointers.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

BackgroundCommand::~BackgroundCommand() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

std::string BackgroundCommand::wait_for_output(const std::string& part) {
  drain(
      out_, err_, result_, [&] { return result_.out.find(part) != std::string::npos; },
      std::chrono::seconds(20));
  EXPECT_NE(result_.out.find(part), std::string::npos) << result_.out << result_.err;
  return result_.out;
}

CommandResult BackgroundCommand::finish() {
  drain(
      out_, err_, result_, [] { return false; }, std::chrono::seconds(40));
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  result_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result_;
}

CommandResult run_command(std::vector<std::string> argv) {
  auto begin = std::chrono::steady_clock::now();
  BackgroundCommand command(std::move(argv));
  CommandResult result = command.finish();
  result.took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  return result;
}

bool process_runs(int pid) { return process_start_time(pid) != 0; }

int child_of(int parent, const std::string& argument) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const int pid = std::atoi(entry.path().filename().c_str());
    auto stat =
        pid > 0 ? read_file(entry.path() / "stat", 1 << 16) : Result<std::string>(not_found(""));
    auto words = stat.ok() ? read_file(entry.path() / "cmdline", 1 << 16) : stat;
    if (!words.ok() ||
        words->find(std::string(1, '\0') + argument + std::string(1, '\0')) == std::string::npos)
      continue;
    if (std::atoi(stat->c_str() + stat->rfind(')') + 4) == parent) return pid;
  }
  return 0;
}

long resident_kib(int pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  }
  return -1;
}

std::string ClusterTest::program() {
  const char* folder = std::getenv("STARLING_BIN");
  return std::string(folder ? folder : STARLING_BIN_DIR) + "/starling";
}

std::string ClusterTest::self() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

CommandResult ClusterTest::starling(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program());
  return run_command(std::move(arguments));
}

std::string ClusterTest::start_head(std::vector<std::string> more) {
  more.insert(more.begin(), {"start", "--head", "--port", "0"});
  CommandResult started = starling(std::move(more));
  EXPECT_EQ(started.code, 0) << started.err;
  return started.last_line();
}

std::string ClusterTest::start_node(const std::string& head, std::vector<std::string> more) {
  more.insert(more.begin(), {"start", "--address", head});
  CommandResult started = starling(std::move(more));
  EXPECT_EQ(started.code, 0) << started.err;
  return started.last_line();
}

SessionInfo ClusterTest::session_of(const std::string& address) {
  for (SessionInfo& session : running_sessions()) {
    if (session.address == address) return session;
  }
  ADD_FAILURE() << "no node at " << address;
  return {};
}

void ClusterTest::TearDown() {
  while (!running_sessions().empty()) {
    std::string address = running_sessions()[0].head_address;
    CommandResult stopped = starling({"stop", "--force", "--address", address});
    if (stopped.code != 0) {
      for (const SessionInfo& session : running_sessions()) ::kill(session.pid, SIGKILL);
    }
    EXPECT_EQ(stopped.code, 0) << stopped.err;
  }
  remove_dead_sessions();  // of nodes that a test killed; what the next start does
  // Only logs may stay, and the marks by which a later start knows their folders as ours: no
  // socket, no token, no session file.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    const std::filesystem::path name = entry.path().filename();
    const bool stays = entry.is_directory() || entry.path().parent_path().filename() == "logs" ||
                       name == kNodeLock || name == kRootMark;
    EXPECT_TRUE(stays) << entry.path() << " was left behind";
  }
}

}  // namespace runtime
