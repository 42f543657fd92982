// A run of `starling train` or `starling sft` as a user starts it, and its metrics.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/take.h"
#include "bench/support/timing.h"
#include "bench/support/training_data.h"

namespace bench {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

inline fs::path programs() { return fs::read_symlink("/proc/self/exe").parent_path(); }

struct Run {
  double first_step_s = 0;
  std::vector<ordered_json> steps;  // metrics
};

// Starts the command as a user does, and looks for the first step's line while it runs.
inline Run run(const std::vector<std::string>& arguments, const fs::path& folder) {
  fs::remove_all(folder);
  const fs::path metrics = folder / "metrics.jsonl";
  const fs::path output = folder.string() + ".log";
  const auto begin = Clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen(output.c_str(), "w", stdout) == nullptr) std::_Exit(127);
    ::dup2(::fileno(stdout), 2);
    ::unsetenv("STARLING_ADDRESS");
    std::vector<char*> argv;
    std::string program = (programs() / "starling").string();
    argv.push_back(program.data());
    std::vector<std::string> copies = arguments;
    for (std::string& argument : copies) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(program.c_str(), argv.data());
    std::_Exit(127);
  }
  Run result;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    std::error_code none;
    if (result.first_step_s == 0 && fs::exists(metrics, none) && fs::file_size(metrics, none) > 0)
      result.first_step_s = seconds_since(begin);
    std::this_thread::sleep_for(std::chrono::milliseconds(result.first_step_s == 0 ? 5 : 50));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail("the run failed; what it said is in " + output.string());
  std::ifstream in(metrics);
  for (std::string line; std::getline(in, line);)
    result.steps.push_back(ordered_json::parse(line)["data"]);
  if (result.steps.size() < 2)
    fail("fewer than two steps; what the run said is in " + output.string());
  return result;
}

inline double median_of(const Run& run, const char* metric) {
  std::vector<double> values;
  for (std::size_t step = 1; step < run.steps.size(); ++step)
    values.push_back(run.steps[step].value(metric, 0.0));
  return median(values);
}

/// The arguments of a suite's run (grpo, sft, toy) on what write_sums() and its like wrote into the
/// folder.
inline std::vector<std::string> arguments_of(const std::string& suite, const std::string& of_model,
                                             const fs::path& folder, std::size_t steps) {
  const std::string model = of_model.empty() ? "" : fs::absolute(of_model).string();
  std::vector<std::string> arguments = {suite == "sft" ? "sft" : "train",
                                        "trainer.total_training_steps=" + std::to_string(steps),
                                        "trainer.save_freq=0",
                                        "trainer.test_freq=-1",
                                        "trainer.nnodes=1",
                                        "trainer.n_gpus_per_node=1",
                                        "trainer.logger=[file]",
                                        "trainer.default_local_dir=" + (folder / suite).string()};
  std::vector<std::string> more;
  if (suite == "grpo")
    more = {"data.train_files=" + (folder / "sums.jsonl").string(),
            "reward.rule=number",
            "actor_rollout_ref.model.path=" + model,
            "data.train_batch_size=4",
            "actor_rollout_ref.actor.ppo_mini_batch_size=4",
            "actor_rollout_ref.rollout.n=4",
            "data.max_prompt_length=64",
            "data.max_response_length=32",
            "actor_rollout_ref.actor.optim.lr=1e-6"};
  else if (suite == "sft")
    more = {"data.train_files=" + (folder / "texts.jsonl").string(),
            "model.path=" + model,
            "data.train_batch_size=8",
            "data.max_length=" + std::to_string(kSftTokens),
            "data.truncation=right",
            "optim.lr=1e-5"};
  else
    more = {"data.train_files=" + (folder / "toy.jsonl").string(),
            "actor_rollout_ref.model.path=" + (folder / "toy_model").string(),
            "data.train_batch_size=16",
            "actor_rollout_ref.actor.ppo_mini_batch_size=16",
            "actor_rollout_ref.rollout.n=4",
            "actor_rollout_ref.rollout.ignore_eos=true",
            "data.max_prompt_length=32",
            "data.max_response_length=16",
            "actor_rollout_ref.actor.optim.lr=1e-3"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace bench
