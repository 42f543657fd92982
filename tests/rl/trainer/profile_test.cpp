// profile=steps[...] from the command line: the traces have every role, every rank and every kind
// of span, and change no number.
#include <map>
#include <set>

#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

// PPO with a reference: all four roles, two ranks each.
constexpr const char* kAllRoles =
    "algorithm.adv_estimator=gae algorithm.use_kl_in_reward=true trainer.n_gpus_per_node=2 "
    "trainer.cpus_per_worker=1 trainer.total_training_steps=3 ";

class ProfileTest : public TrainerTest {
 protected:
  struct Trace {
    std::map<int, std::string> processes;
    std::map<std::string, std::set<std::string>> categories;  // by process
    std::set<std::string> names;
    std::vector<nlohmann::json> steps;
  };

  // Checks the format and that spans nest; a trace's spans lie within its steps.
  static Trace parse(const fs::path& file) {
    Trace trace;
    const auto json = nlohmann::json::parse(read(file), nullptr, false);
    EXPECT_TRUE(json.is_object()) << file;
    if (!json.is_object()) return trace;
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> open;
    for (const auto& event : json["traceEvents"]) {
      const int pid = event["pid"];
      if (event["ph"] == "M") {
        if (event["name"] == "process_name") trace.processes[pid] = event["args"]["name"];
        continue;
      }
      EXPECT_EQ(event["ph"], "X");
      trace.categories[trace.processes[pid]].insert(event["cat"]);
      trace.names.insert(event["name"]);
      if (event["cat"] == "step") trace.steps.push_back(event);
    }
    double end = 0.0;
    for (const auto& step : trace.steps)
      end = std::max(end, step["ts"].get<double>() + step["dur"].get<double>());
    for (const auto& event : json["traceEvents"]) {
      if (event["ph"] != "X") continue;
      const double from = event["ts"], to = from + event["dur"].get<double>();
      constexpr double kRounding = 0.002;  // of microseconds with three digits
      EXPECT_GE(from, 0.0) << event;
      EXPECT_LE(to, end + kRounding) << event;
      auto& stack = open[{event["pid"], event["tid"]}];
      while (!stack.empty() && stack.back().second <= from + kRounding) stack.pop_back();
      if (!stack.empty()) {
        EXPECT_LE(to, stack.back().second + kRounding)
            << event << " begins in another span and ends outside of it";
      }
      stack.emplace_back(from, to);
    }
    return trace;
  }

  static std::set<std::string> names_of(const Trace& trace) {
    std::set<std::string> names;
    for (const auto& [pid, name] : trace.processes) names.insert(name);
    return names;
  }
};

TEST_F(ProfileTest, HasRolesRanksAndKernelsAndChangesNoNumber) {
  const Outcome profiled = train(std::string(kAllRoles) + "\"profile=steps[2,3]\"");
  ASSERT_EQ(profiled.code, 0) << profiled.output;
  const fs::path folder = folder_ / "run" / "profile";
  EXPECT_FALSE(fs::exists(folder / "step_1.trace.json"));
  for (const int step : {2, 3}) {
    const Trace trace = parse(folder / ("step_" + std::to_string(step) + ".trace.json"));
    EXPECT_EQ(names_of(trace),
              (std::set<std::string>{"controller", "policy 0", "policy 1", "critic 0", "critic 1",
                                     "reward 0", "reward 1", "reference 0", "reference 1"}));
    ASSERT_EQ(trace.steps.size(), 1u);
    EXPECT_EQ(trace.steps[0]["name"], "step " + std::to_string(step));
    for (const char* name :
         {"gen", "ref", "adv", "update_actor", "update_critic", "generate", "estimate", "update",
          "score", "engine step", "attention", "attention backward", "all-reduce", "optimizer step",
          "linear backward", "aten::mul"}) {
      EXPECT_TRUE(trace.names.contains(name)) << name;
    }
    for (const auto& [process, categories] : trace.categories) {
      if (process == "controller")
        EXPECT_EQ(categories, (std::set<std::string>{"step", "lap"}));
      else
        EXPECT_TRUE(categories.contains("call")) << process;
      if (process.starts_with("policy") || process.starts_with("critic") ||
          process.starts_with("reference")) {
        EXPECT_EQ(categories, (std::set<std::string>{"call", "operation", "kernel"})) << process;
      }
    }
  }
  EXPECT_NE(profiled.output.find("step 3: profile in "), std::string::npos) << profiled.output;
  EXPECT_NE(profiled.output.find("  update_actor "), std::string::npos) << profiled.output;

  const std::vector<std::string> with = numbers(folder_ / "run");
  fs::remove_all(folder_ / "run");
  const Outcome plain = train(kAllRoles);
  ASSERT_EQ(plain.code, 0) << plain.output;
  EXPECT_FALSE(fs::exists(folder));
  ASSERT_EQ(with.size(), 3u);
  EXPECT_EQ(with, numbers(folder_ / "run"));
}

TEST_F(ProfileTest, TakesVerlsKeys) {
  const Outcome run =
      train(std::string(kAllRoles) +
            "global_profiler.steps=[1,2] global_profiler.profile_continuous_steps=True "
            "global_profiler.save_path=" +
            (folder_ / "elsewhere").string() +
            " critic.profiler.enable=False actor_rollout_ref.actor.profiler.ranks=[1]");
  ASSERT_EQ(run.code, 0) << run.output;
  const Trace trace = parse(folder_ / "elsewhere" / "steps_1-2.trace.json");
  EXPECT_EQ(names_of(trace), (std::set<std::string>{"controller", "policy 1", "reward 0",
                                                    "reward 1", "reference 0", "reference 1"}));
  ASSERT_EQ(trace.steps.size(), 2u);
  EXPECT_EQ(trace.steps[1]["name"], "step 2");
  EXPECT_FALSE(fs::exists(folder_ / "run" / "profile"));
}

TEST_F(ProfileTest, ATraceThatCannotBeWrittenIsAWarning) {
  const Outcome run = train(
      "trainer.total_training_steps=2 \"profile=steps[1]\" "
      "global_profiler.save_path=/proc/nowhere");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_NE(run.output.find("(global_profiler.save_path); training continues"), std::string::npos)
      << run.output;
  EXPECT_EQ(numbers(folder_ / "run").size(), 2u);
}

TEST_F(ProfileTest, StagesHaveThemToo) {
  const std::string dpo =
      STARLING_BIN_DIR
      "/starling-rl dpo data.dataset_name=toy data.toy.letters=4 data.toy.length=2 "
      "data.train_batch_size=8 data.max_length=64 model.path=" +
      model() +
      " trainer.n_gpus_per_node=2 trainer.cpus_per_worker=1 trainer.total_training_steps=2 "
      "trainer.default_local_dir=" +
      (folder_ / "run").string() +
      " engine.dtype=bfloat16 model.enable_gradient_checkpointing=true \"profile=steps[2]\"";
  const Outcome run = shell("exec " + dpo);
  ASSERT_EQ(run.code, 0) << run.output;
  const Trace trace = parse(folder_ / "run" / "profile" / "step_2.trace.json");
  EXPECT_EQ(names_of(trace), (std::set<std::string>{"controller", "worker 0", "worker 1"}));
  for (const char* name :
       {"step 2", "update", "recomputed layer backward", "all-reduce", "aten::mm"})
    EXPECT_TRUE(trace.names.contains(name)) << name;
}

TEST_F(ProfileTest, StepsMustBeSteps) {
  const Outcome run = train("global_profiler.steps=[0]");
  EXPECT_NE(run.code, 0);
  EXPECT_NE(run.output.find("global_profiler.steps: must be a list of integers from 1 on"),
            std::string::npos)
      << run.output;
}

}  // namespace
}  // namespace rl
