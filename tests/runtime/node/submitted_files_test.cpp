// Files of a job: its folder, its program, its output.
#include <sys/stat.h>

#include <csignal>
#include <set>
#include <sstream>

#include "runtime/process/cache_folder.h"
#include "tests/runtime/node/job_fixture.h"

namespace runtime {
namespace {

// Files and folders, all the way down; -1 where what is counted is being removed meanwhile.
/// Marks of caches aside.
int entries_below(const fs::path& folder) {
  std::error_code error;
  int count = 0;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
    count += entry->path().filename() != kCacheMark;
  return error ? -1 : count;
}

/// Whether a job's process that runs this program waits: it sleeps in the kernel.
bool is_held_up(const std::string& job, const std::string& program) {
  for (const auto& process : fs::directory_iterator("/proc")) {
    const auto environment = runtime::read_file(process.path() / "environ", 1 << 20);
    const auto stat = runtime::read_file(process.path() / "stat", 1 << 16);
    if (environment.ok() && stat.ok() &&
        environment->find("STARLING_JOB=" + job) != std::string::npos &&
        stat->find("(" + program + ") S") != std::string::npos)
      return true;
  }
  return false;
}

TEST_F(Job, ItsFolderIsShippedCachedAndRemoved) {
  start_head();
  write(work_.path() / "run.sh", "#!/bin/sh\ncat sub/data; pwd; echo made > made; exit 4\n");
  write(work_.path() / "sub/data", "hello\n");
  write(work_.path() / "secret", "no");
  write(work_.path() / ".starlingignore", "secret\n");
  CommandResult result =
      starling({"submit", "--working-dir", work_.path().string(), "--", "./run.sh"});
  EXPECT_EQ(result.code, 4) << result.err;
  EXPECT_TRUE(result.out.starts_with("hello\n" + folders().string())) << result.out;
  EXPECT_FALSE(fs::exists(work_.path() / "made"));  // it ran in a copy
  EXPECT_TRUE(
      eventually([&] { return entries_below(folders()) == 2; }));  // the node's folder and its lock
  // The second time nothing is sent: what is cached stays as it is.
  std::map<std::string, ino_t> cached;
  const auto look = [&] {
    std::map<std::string, ino_t> found;
    for (const auto& file : fs::directory_iterator(cache_folder_.path() / "files")) {
      struct stat info;
      if (file.path().filename() != kCacheMark && ::stat(file.path().c_str(), &info) == 0)
        found[file.path().filename()] = info.st_ino;
    }
    return found;
  };
  cached = look();
  EXPECT_EQ(cached.size(), 3u);
  EXPECT_EQ(starling({"submit", "--working-dir", work_.path().string(), "--", "./run.sh"}).code, 4);
  EXPECT_EQ(look(), cached);
  write(work_.path() / "sub/data", "changed\n");
  EXPECT_TRUE(starling({"submit", "--working-dir", work_.path().string(), "--", "./run.sh"})
                  .out.starts_with("changed\n"));
}

TEST_F(Job, AProgramFromElsewhereIsShippedWithTheFolder) {
  start_head();
  write(work_.path() / "x", "in the folder\n");
  support::TemporaryFolder elsewhere;
  write(elsewhere.path() / "tool", "#!/bin/sh\necho $0; cat x\n");
  CommandResult result =
      starling({"submit", "--working-dir", work_.path().string(), "--", elsewhere.file("tool")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("in the folder"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(folders().string()), std::string::npos) << result.out;
  // A driver with its actors, too.
  CommandResult driver = starling(
      {"submit", "--working-dir", work_.path().string(), "--", self(), "driver", "exit", "5"});
  EXPECT_EQ(driver.code, 5) << driver.err;
}

TEST_F(Job, ActorsOnOtherNodesHaveItsFolderToo) {
  const std::string head = start_head({"--num-cpus", "1"});
  const std::string node = start_node(head, {"--num-cpus", "1"});
  write(work_.path() / "sub/data", "data\n");
  write(work_.path() / "twice", "data\n");
  write(work_.path() / "empty", "");
  CommandResult result = starling({"submit", "--address", head, "--working-dir",
                                   work_.path().string(), "--", self(), "driver", "folders"});
  ASSERT_EQ(result.code, 0) << result.out << result.err;
  // Where its two actors ran, on two nodes.
  std::istringstream lines(result.out);
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t at = line.find("runs in "); at != std::string::npos)
      seen.insert(line.substr(at + 8));
  }
  EXPECT_EQ(seen.size(), 2u) << result.out;
  for (const std::string& folder : seen)
    EXPECT_TRUE(folder.starts_with(folders().string()) &&
                folder.ends_with("/work: 3 entries, data"))
        << folder;
  EXPECT_TRUE(
      eventually([&] { return entries_below(folders()) == 4; }));  // two nodes' folders and locks
}

TEST_F(Job, AFolderThatIsTooLargeNamesItsLargestFiles) {
  start_head({"--job-size-limit", "1000"});
  write(work_.path() / "huge.bin", std::string(2000, 'x'));
  write(work_.path() / "small", "x");
  CommandResult result = starling({"submit", "--working-dir", work_.path().string(), "--", "true"});
  EXPECT_EQ(result.code, 1);
  for (const char* part : {"huge.bin (1.953 KiB)", "--job-size-limit", ".starlingignore"})
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  EXPECT_EQ(Json::parse(starling({"list", "jobs", "--json"}).out).size(), 0u);
  CommandResult missing =
      starling({"submit", "--working-dir", work_.file("nowhere"), "--", "true"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("does not exist"), std::string::npos);
}

TEST_F(Job, ASubmitterThatDoesNotReadHoldsUpNothingButItsJob) {
  start_head();
  BackgroundCommand submit({program(), "submit", "--", "sh", "-c", "echo first; exec yes"});
  submit.wait_for_output("first");
  ::kill(submit.pid(), SIGSTOP);
  const std::string id = Json::parse(starling({"job", "list", "--json"}).out)[0]["id"];
  EXPECT_TRUE(eventually([&] { return is_held_up(id, "yes"); })) << "no process reads its output";
  EXPECT_EQ(starling({"submit", "--", "echo", "others go on"}).out, "others go on\n");
  CommandResult stopped = starling({"job", "stop", id});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(job(id)["state"], "stopped");
  ::kill(submit.pid(), SIGCONT);
}

TEST_F(Job, BinaryOutputIsKeptAsItIs) {
  start_head();
  const std::string id =
      submit({"--", "sh", "-c", "head -c 300000 /dev/urandom | tee out.bin", "x"});
  wait_for_end(id);
  const fs::path written = fs::current_path() / "out.bin";
  EXPECT_EQ(starling({"job", "logs", id}).out, *runtime::read_file(written, 1 << 20));
  fs::remove(written);
}

TEST_F(Job, LogsSayWhatWasRotatedAway) {
  start_head();
  const std::string short_one = submit({"--", "echo", "all of it"});
  wait_for_end(short_one);
  EXPECT_EQ(starling({"job", "logs", short_one}).err, "");
  constexpr std::uint64_t kBytes = 200'000'000;
  const std::string id =
      submit({"--", "sh", "-c", "yes 123456789abcdef | head -c " + std::to_string(kBytes)});
  wait_for_end(id);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"job", "logs", id}, {"logs", id}, {"job", "logs", "-f", id}}) {
    CommandResult logs = starling(command);
    EXPECT_EQ(logs.code, 0) << logs.err;
    EXPECT_LT(logs.out.size(), kBytes);
    EXPECT_GT(logs.out.size(), kBytes / 4);
    EXPECT_NE(logs.err.find("note: the log of job " + id.substr(0, 8) + " begins after its first " +
                            std::to_string(kBytes - logs.out.size()) +
                            " bytes, which were rotated away."),
              std::string::npos)
        << logs.err;
    EXPECT_EQ(std::count(logs.err.begin(), logs.err.end(), '\n'), 1) << logs.err;
  }
}

TEST_F(Job, LogsAreFollowedToItsEnd) {
  start_head();
  const std::string id = submit(
      {"--", "sh", "-c",
       "echo line 1; " + until("first") + "echo line 2; " + until("second") + "echo line 3"});
  BackgroundCommand follower({program(), "job", "logs", "-f", id});
  follower.wait_for_output("line 1\n");
  write(work_.file("first"), "");
  follower.wait_for_output("line 2\n");
  write(work_.file("second"), "");
  const CommandResult followed = follower.finish();
  EXPECT_EQ(followed.code, 0) << followed.err;
  EXPECT_EQ(followed.out, "line 1\nline 2\nline 3\n");
}

}  // namespace
}  // namespace runtime
