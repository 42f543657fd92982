// The cost of training on several workers against one: as many threads in all, the same model, data
// and samples.
//
//   bench_mesh [--model MODEL] [--folder FOLDER] [--steps 4] [--rounds 2] [--json]
//              [--suite grpo,toy] [--mesh one,two,...]   of the names below (default: all)
//              [--keys KEY=VALUE,...]                    added to each run of grpo
//
//   grpo   MODEL (SmolLM2-135M): 4 prompts of 4 responses a step, as in bench_trainer
//   toy    a model of 7 million parameters made on the spot: 16 prompts of 4 responses a step
//
// One worker of two threads against two workers of one thread each. Two workers use plain data
// parallelism, ZeRO-1 to 3, or teams of two (tensor and sequence parallelism). Four leaves
// (trainer.gradient_leaves) are on one and on two workers. All run in turns, `rounds` times;
// figures are medians of the second step on over all rounds, ratios are to one worker. Without
// MODEL only the toy runs.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/support/figures.h"
#include "bench/support/options.h"
#include "bench/support/training_data.h"
#include "bench/support/training_run.h"

namespace {

using namespace bench;

struct Mesh {
  const char* name;
  std::vector<std::string> arguments;
};

const std::vector<Mesh> kMeshes = {
    {"one", {"trainer.n_gpus_per_node=1", "trainer.cpus_per_worker=2"}},
    {"two", {"trainer.n_gpus_per_node=2", "trainer.cpus_per_worker=1"}},
    {"two_zero1",
     {"trainer.n_gpus_per_node=2", "trainer.cpus_per_worker=1",
      "actor_rollout_ref.actor.fsdp_config.zero_level=1"}},
    {"two_zero2",
     {"trainer.n_gpus_per_node=2", "trainer.cpus_per_worker=1",
      "actor_rollout_ref.actor.fsdp_config.zero_level=2"}},
    {"two_zero3",
     {"trainer.n_gpus_per_node=2", "trainer.cpus_per_worker=1",
      "actor_rollout_ref.actor.fsdp_config.zero_level=3"}},
    {"two_tensor2",
     {"trainer.n_gpus_per_node=2", "trainer.cpus_per_worker=1",
      "parallel_config.tensor_parallel_size=2"}},
    {"two_sequence2",
     {"trainer.n_gpus_per_node=2", "trainer.cpus_per_worker=1",
      "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2"}},
    {"two_pipeline2",
     {"trainer.n_gpus_per_node=2", "trainer.cpus_per_worker=1",
      "parallel_config.pipeline_parallel_size=2"}},
    {"one_four_leaves",
     {"trainer.n_gpus_per_node=1", "trainer.cpus_per_worker=2", "trainer.gradient_leaves=4"}},
    {"two_four_leaves",
     {"trainer.n_gpus_per_node=2", "trainer.cpus_per_worker=1", "trainer.gradient_leaves=4"}},
};

struct Seconds {
  std::vector<double> update, step;
  double peak_gb = 0;  // of a worker
};

void take(Seconds& seconds, const Run& of) {
  for (std::size_t step = 1; step < of.steps.size(); ++step) {
    seconds.update.push_back(of.steps[step].value("timing_s/update_actor", 0.0));
    seconds.step.push_back(of.steps[step].value("timing_s/step", 0.0));
    seconds.peak_gb =
        std::max(seconds.peak_gb, of.steps[step].value("perf/max_memory_allocated_gb", 0.0));
  }
}

struct Options {
  std::string model, suites = "grpo,toy", meshes, keys;
  std::string folder = (fs::temp_directory_path() / "bench_mesh").string();
  std::size_t steps = 4, rounds = 2;
  bool json = false;
};

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

// Those that were asked for, one worker first.
std::vector<Mesh> meshes_of(const Options& options) {
  if (options.meshes.empty()) return kMeshes;
  std::vector<Mesh> chosen = {kMeshes.front()};
  for (const std::string& name : words_of(options.meshes)) {
    const auto found =
        std::ranges::find_if(kMeshes, [&](const Mesh& mesh) { return mesh.name == name; });
    if (found == kMeshes.end()) fail("--mesh: there is no " + name);
    if (found != kMeshes.begin()) chosen.push_back(*found);
  }
  return chosen;
}

void measure(const std::string& suite, const Options& options, const fs::path& folder,
             ordered_json& figures) {
  const std::vector<Mesh> meshes = meshes_of(options);
  std::map<std::string, Seconds> seconds;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    for (const Mesh& mesh : meshes) {
      std::vector<std::string> arguments =
          arguments_of(suite, options.model, folder, options.steps);
      arguments.insert(arguments.end(), mesh.arguments.begin(), mesh.arguments.end());
      const std::vector<std::string> keys = words_of(suite == "grpo" ? options.keys : "");
      arguments.insert(arguments.end(), keys.begin(), keys.end());
      take(seconds[mesh.name], run(arguments, folder / suite));
    }
  }
  const double update = median(seconds["one"].update), step = median(seconds["one"].step);
  for (const Mesh& mesh : meshes) {
    const std::string name = suite + "_" + mesh.name;
    figures[name + "_update_s"] = median(seconds[mesh.name].update);
    figures[name + "_step_s"] = median(seconds[mesh.name].step);
    figures[name + "_peak_gb"] = seconds[mesh.name].peak_gb;
    figures[name + "_update_ratio"] = median(seconds[mesh.name].update) / update;
    figures[name + "_step_ratio"] = median(seconds[mesh.name].step) / step;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  read_options(argc, argv,
               {{"--model", &options.model},
                {"--folder", &options.folder},
                {"--steps", &options.steps},
                {"--rounds", &options.rounds},
                {"--suite", &options.suites},
                {"--mesh", &options.meshes},
                {"--keys", &options.keys},
                {"--json", &options.json}});
  const fs::path folder = fs::absolute(options.folder);
  fs::create_directories(folder);
  write_sums(folder / "sums.jsonl");
  write_toy(folder);
  ordered_json figures;
  for (const std::string& suite : words_of(options.suites)) {
    if (suite != "grpo" && suite != "toy") fail("--suite: grpo and toy, not " + suite);
    if (suite != "grpo" || !options.model.empty()) measure(suite, options, folder, figures);
  }
  print_figures(figures, options.json);
  return 0;
}
