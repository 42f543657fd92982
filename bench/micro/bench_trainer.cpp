// Cost of a training step, and time to the first one: three runs of `starling train` and `starling
// sft` as a user starts them.
//
//   bench_trainer --model MODEL [--folder FOLDER] [--suite grpo,sft,toy] [--steps 6] [--json]
//                 [--keys KEY=VALUE,...]          added to each run: trainer.device=cuda
//   bench_trainer --folder FOLDER --make          only writes the data and the toy model there:
//                                                 what bench/peers/trl reads
//
//   grpo   MODEL (SmolLM2-135M): GRPO on sums, 4 prompts of 4 responses a step, at most 32 new
//          tokens, one worker, fp32
//   sft    MODEL: 8 sequences of 256 tokens a step
//   toy    a model of 7 million parameters made on the spot: 16 prompts of 4 responses of 16 tokens
//          a step
//
// Figures are seconds a step (the median of the second step on) and samples or tokens a second.
// Others are the seconds from the program's start to the end of its first step, and the largest
// worker's peak memory. Next to that stands what `--dry-run` predicted. MODEL is a Hugging Face
// folder or a GGUF file; without one, only the toy runs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/options.h"
#include "bench/support/timing.h"
#include "bench/support/training_data.h"
#include "bench/support/training_run.h"

namespace {

using namespace bench;

// The last line of the program's output that says how much memory the policy takes, in GB; 0 where
// there is none.
double predicted_gb(const std::vector<std::string>& arguments) {
  std::string command = (programs() / "starling").string();
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  std::FILE* pipe = ::popen((command + " --dry-run 2>/dev/null").c_str(), "r");
  double found = 0;
  char line[512];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    const std::string text = line;
    const std::size_t at = text.find(" x 1: ");
    if (found != 0 || at == std::string::npos) continue;
    double value = 0;
    char unit[3] = {};
    if (std::sscanf(text.c_str() + at + 6, "%lf %2s", &value, unit) == 2)
      found = unit[0] == 'G' ? value : value / 1000;
  }
  ::pclose(pipe);
  return found;
}

double greatest_of(const Run& run, const char* metric) {
  double greatest = 0;
  for (const ordered_json& step : run.steps) greatest = std::max(greatest, step.value(metric, 0.0));
  return greatest;
}

class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void add(const std::string& suite, const std::vector<std::string>& arguments, const Run& of,
           const char* unit, double count) {
    const double seconds = median_of(of, "timing_s/step");
    const double peak = greatest_of(of, "perf/max_memory_allocated_gb") * 1.073741824;  // GiB to GB
    const double predicted = predicted_gb(arguments);
    const double rate = (count > 0 ? count : median_of(of, "train/global_tokens")) / seconds;
    values[suite + "_s_per_step"] = seconds;
    values[suite + "_" + unit + "_per_s"] = rate;
    values[suite + "_first_step_s"] = of.first_step_s;
    values[suite + "_peak_gb"] = peak;
    values[suite + "_predicted_gb"] = predicted;
    for (const char* phase : {"gen", "update_actor"}) {
      if (of.steps[1].contains(std::string("timing_s/") + phase))
        values[suite + "_" + phase + "_s"] =
            median_of(of, (std::string("timing_s/") + phase).c_str());
    }
    if (!json_)
      std::printf(
          "%-5s %7.3f s a step  %8.2f %s/s  first step after %6.2f s  peak %5.2f GB (predicted "
          "%5.2f)\n",
          suite.c_str(), seconds, rate, unit, of.first_step_s, peak, predicted);
    std::fflush(stdout);
  }

  ordered_json values;

 private:
  bool json_;
};

struct Options {
  std::string folder = (fs::temp_directory_path() / "bench_trainer").string();
  std::string model, suites = "grpo,sft,toy", keys;
  bool json = false, make = false;
  std::size_t steps = 6;

  bool wants(const std::string& suite) const {
    return ("," + suites + ",").find("," + suite + ",") != std::string::npos;
  }
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  read_options(argc, argv,
               {{"--model", &options.model},
                {"--folder", &options.folder},
                {"--suite", &options.suites},
                {"--steps", &options.steps},
                {"--keys", &options.keys},
                {"--make", &options.make},
                {"--json", &options.json}});
  const fs::path folder = fs::absolute(options.folder);
  fs::create_directories(folder);
  write_sums(folder / "sums.jsonl");
  write_texts(folder / "texts.jsonl");
  write_toy(folder);
  if (options.make) return 0;
  if (options.model.empty() && (options.wants("grpo") || options.wants("sft")))
    fail("--model names the model of the suites grpo and sft; --suite toy needs none");
  Report report(options.json);
  report.values = {{"machine", machine()},
                   {"commit", commit()},
                   {"load_average_before", proc_value("/proc/loadavg", "").substr(0, 4)},
                   {"steps", options.steps},
                   {"keys", options.keys}};
  struct Suite {
    const char* name;
    const char* unit;
    double count;  // of units a step; 0: as the run says
  };
  for (const Suite& suite :
       {Suite{"grpo", "samples", 16}, {"sft", "tokens", 0}, {"toy", "samples", 64}}) {
    if (!options.wants(suite.name)) continue;
    std::vector<std::string> arguments =
        arguments_of(suite.name, options.model, folder, options.steps);
    std::istringstream more(options.keys);
    for (std::string key; std::getline(more, key, ',');) arguments.push_back(key);
    report.add(suite.name, arguments, run(arguments, folder / suite.name), suite.unit, suite.count);
  }
  if (options.json) std::printf("%s\n", report.values.dump(2).c_str());
  return 0;
}
