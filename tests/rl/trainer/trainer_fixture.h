// Whole runs of `starling-rl train` in their own processes: each starts its cluster and must
// leave nothing behind.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "rl/worker/toy_model.h"
#include "tests/support/eventually.h"
#include "tests/support/pauses.h"

namespace rl {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string output;  // stdout and stderr
};

inline std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The metrics of each step of a run.
inline std::vector<nlohmann::json> steps_of(const fs::path& run) {
  std::vector<nlohmann::json> steps;
  std::ifstream in(run / "metrics.jsonl");
  for (std::string line; std::getline(in, line);)
    steps.push_back(nlohmann::json::parse(line)["data"]);
  return steps;
}

class TrainerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("starling-trainer-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    sessions_ = "/tmp/st" +
                std::to_string(::getpid());  // short: sockets have names of at most 107 characters
    fs::create_directories(sessions_);
    // Their own sessions, so that a cluster that already runs on this machine is neither used
    // nor disturbed.
    ::setenv("XDG_RUNTIME_DIR", sessions_.c_str(), 1);
    ::unsetenv("STARLING_ADDRESS");
  }
  void TearDown() override {
    EXPECT_EQ(processes(), "") << "left running";
    fs::remove_all(folder_);
    fs::remove_all(sessions_);
  }

  static Outcome shell(const std::string& command) {
    Outcome run;
    std::FILE* pipe = ::popen(("timeout -k 5 120 sh -c '" + command + "' 2>&1").c_str(), "r");
    std::array<char, 4096> buffer;
    for (std::size_t count; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      run.output.append(buffer.data(), count);
    const int status = ::pclose(pipe);
    run.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return run;
  }

  // `starling-rl train` on the toy task with a small toy model. It keeps no weights unless it is
  // told to, so that one test's runs in a folder do not go on from each other.
  Outcome train(const std::string& arguments) const {
    return shell("exec " + train_command(arguments));
  }

  std::string train_command(const std::string& arguments) const {
    return (STARLING_BIN_DIR
            "/starling-rl train data.dataset_name=toy data.toy.letters=4 data.toy.length=2 "
            "data.train_batch_size=4 "
            "data.max_prompt_length=32 data.max_response_length=4 actor_rollout_ref.rollout.n=4 "
            "actor_rollout_ref.actor.optim.lr=1e-3 "
            "actor_rollout_ref.model.path=" +
            model() +
            " trainer.logger=[console,file] trainer.save_freq=0 trainer.default_local_dir=" +
            (folder_ / "run").string() + " " + arguments);
  }

  // A training that goes on during the test and writes to folder_ / "output".
  pid_t start(const std::string& command) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setenv("LC_ALL", "C", 1);
      const std::string quiet = "exec " + command + " >>" + (folder_ / "output").string() + " 2>&1";
      ::execl("/bin/sh", "sh", "-c", quiet.c_str(), nullptr);
      ::_exit(127);
    }
    return pid;
  }

  // Until the condition holds. False: the training of start() ended before, or it never does.
  template <class Condition>
  static bool comes_while_it_runs(pid_t pid, Condition&& condition,
                                  std::chrono::milliseconds pause = std::chrono::milliseconds(2)) {
    bool holds = false;
    support::eventually(
        [&] {
          holds = condition();
          return holds || ::waitpid(pid, nullptr, WNOHANG) != 0;
        },
        kHangsAfter, pause);
    return holds;
  }

  // Until that step is in the metrics of `run`. False: as comes_while_it_runs().
  static bool wait_for_step(pid_t pid, const fs::path& run, int step) {
    return comes_while_it_runs(pid, [&] {
      return read(run / "metrics.jsonl").find("\"step\":" + std::to_string(step) + ",") !=
             std::string::npos;
    });
  }

  // Until no process of the session runs any more.
  bool all_end() const {
    return support::eventually([this] { return processes().empty(); }, std::chrono::seconds(60),
                               std::chrono::milliseconds(50));
  }

  // Ctrl-C (or another signal) once the third step is in the metrics of `run`; returns what the
  // training said, which ends with its step saved.
  std::string interrupt_behind_step_three(const std::string& command, const fs::path& run,
                                          int signal = SIGINT) {
    const pid_t pid = start(command);
    int status = 0;
    if (!wait_for_step(pid, run, 3)) return "ended too early: " + read(folder_ / "output");
    ::kill(pid, signal);
    const auto is_told = [this] {
      return read(folder_ / "output")
                 .find(
                     "interrupted: stopping after this step with a checkpoint; a second signal "
                     "ends "
                     "the run at once") != std::string::npos;
    };
    if (signal == SIGHUP) {  // a shell and the kernel send one each
      EXPECT_TRUE(support::eventually(is_told, kHangsAfter)) << read(folder_ / "output");
      ::kill(pid, signal);
    }
    ::waitpid(pid, &status, 0);
    const std::string told = read(folder_ / "output");
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << told;
    EXPECT_TRUE(is_told()) << told;
    return told;
  }

  // Starts a training and kills its driver as soon as a checkpoint is being written, and a moment
  // more. False: it had ended before.
  bool killed_while_saving(const std::string& command, const fs::path& run_folder,
                           std::chrono::microseconds moment) {
    const auto begun = [&] {
      std::set<std::string> names;
      std::error_code error;
      for (auto entry = fs::directory_iterator(run_folder, error);
           !error && entry != fs::directory_iterator(); entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (name.starts_with(".global_step_")) names.insert(name);
      }
      return names;
    };
    const std::set<std::string> left = begun();  // by those that were killed before
    const pid_t pid = start(command);
    const auto is_saving = [&] {
      const std::set<std::string> now = begun();
      return std::ranges::any_of(now, [&](const auto& name) { return !left.contains(name); });
    };
    if (!comes_while_it_runs(pid, is_saving, std::chrono::milliseconds(1))) return false;
    support::hold_for(moment);  // which part of the checkpoint is there is left to chance
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(all_end()) << processes();
    return WIFSIGNALED(status);
  }

  // A training that is killed up to five times while it writes a checkpoint, and then comes to its
  // end.
  void kill_while_saving(const std::string& command, const fs::path& run_folder) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    int kills = 0;
    while (kills < 5 &&
           killed_while_saving(
               command, run_folder,
               std::chrono::microseconds(std::uniform_int_distribution<int>(0, 30'000)(random))))
      ++kills;
    EXPECT_GE(kills, 2);
    const Outcome last = shell("exec " + command);
    ASSERT_EQ(last.code, 0) << last.output << read(folder_ / "output");
  }

  std::string model(std::int64_t layers = 1) const {
    const fs::path path = folder_ / ("model" + (layers == 1 ? "" : std::to_string(layers)));
    if (!fs::exists(path)) {
      const auto made =
          make_toy_model(path, {.layers = layers, .hidden_size = 32, .intermediate_size = 32});
      EXPECT_TRUE(made.ok()) << made.to_string();
    }
    return path.string();
  }

  // Processes of actors: they have no arguments.
  std::vector<pid_t> workers() const {
    std::vector<pid_t> found;
    std::istringstream lines(processes());
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with("/starling-rl ")) found.push_back(static_cast<pid_t>(std::stol(line)));
    }
    return found;
  }

  // Command lines of processes that belong to this test's session folder.
  std::string processes() const {
    std::string found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos ||
          name == std::to_string(::getpid()))
        continue;
      if (read(entry.path() / "environ").find(sessions_.string()) == std::string::npos) continue;
      if (read(entry.path() / "stat").find(") Z ") != std::string::npos) continue;
      std::string line = read(entry.path() / "cmdline");
      std::replace(line.begin(), line.end(), '\0', ' ');
      found += name + " " + line + "\n";
    }
    return found;
  }

  // The worker of this test's clusters that took the most CPU time: a policy, once training is on
  // its way.
  pid_t busiest_worker() const {
    pid_t busiest = 0;
    long most = -1;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string environment = read(entry.path() / "environ");
      if (environment.find(sessions_.string()) == std::string::npos ||
          environment.find("STARLING_WORKER=") == std::string::npos)
        continue;
      std::istringstream fields(read(entry.path() / "stat"));
      std::string skipped;
      for (int field = 1; field < 14; ++field) fields >> skipped;
      long ticks = 0;
      if (fields >> ticks && ticks > most) {
        most = ticks;
        busiest = static_cast<pid_t>(std::stol(entry.path().filename().string()));
      }
    }
    return busiest;
  }

  // The metrics of every step without the timings, which differ from run to run.
  static std::vector<std::string> numbers(const fs::path& run) {
    std::vector<std::string> lines;
    std::ifstream in(run / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      auto json = nlohmann::ordered_json::parse(line, nullptr, false);
      if (!json.is_object()) break;  // still being written
      json.erase("total");
      nlohmann::ordered_json kept = nlohmann::ordered_json::object();
      for (const auto& [name, value] : json["data"].items()) {
        if (!name.starts_with("timing") && !name.starts_with("perf")) kept[name] = value;
      }
      json["data"] = kept;
      lines.push_back(json.dump());
    }
    return lines;
  }

  // Of numbers(), the metrics of each step of the run in that folder of folder_.
  std::vector<nlohmann::json> steps(const std::string& name) const {
    std::vector<nlohmann::json> read;
    for (const std::string& line : numbers(folder_ / name))
      read.push_back(nlohmann::json::parse(line)["data"]);
    return read;
  }

  static constexpr std::chrono::minutes kHangsAfter{10};

  fs::path folder_;
  fs::path sessions_;
};

}  // namespace rl
