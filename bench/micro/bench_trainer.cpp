// What a training step costs, and how soon the first one is there: three runs of `starling train`
// and `starling sft` as a user starts them.
//
//   bench_trainer --model MODEL [--folder FOLDER] [--suite grpo,sft,toy] [--steps 6] [--json]
//   bench_trainer --folder FOLDER --make          only writes the data and the toy model there:
//   what bench/peers/trl reads
//
//   grpo   MODEL (SmolLM2-135M): GRPO on sums, 4 prompts of 4 responses a step, at most 32 new
//   tokens, one worker, fp32 sft    MODEL: 8 sequences of 256 tokens a step toy    a model of 7
//   million parameters made on the spot: 16 prompts of 4 responses of 16 tokens a step
//
// Figures: seconds a step (the median of the second step on), samples or tokens a second, seconds
// from starting the program to the end of its first step, the largest worker's peak memory, and
// what `--dry-run` predicted. MODEL is a Hugging Face folder or a GGUF file; without one, only the
// toy runs.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/options.h"
#include "bench/support/timing.h"
#include "rl/data/toy.h"
#include "rl/worker/toy_model.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kRows = 512;
constexpr int kSftTokens = 256;

// A generator of our own, so that the files are the same everywhere; Park and Miller 1988.
class Draw {
 public:
  int below(int n) {
    return static_cast<int>((state_ = state_ * 16807 % 2147483647) % static_cast<std::uint64_t>(n));
  }

 private:
  std::uint64_t state_ = 7;
};

void write_sums(const fs::path& path) {
  std::ofstream out(path);
  Draw draw;
  for (int row = 0; row < kRows; ++row) {
    const int a = draw.below(50), b = draw.below(50);
    const std::string question = "What is " + std::to_string(a) + " + " + std::to_string(b) +
                                 "? Answer with the number only.";
    out << ordered_json{{"data_source", "arithmetic"},
                        {"prompt", {{{"role", "user"}, {"content", question}}}},
                        {"reward_model",
                         {{"style", "rule"}, {"ground_truth", std::to_string(a + b)}}}}
               .dump()
        << "\n";
  }
}

// Sequences that are longer than what is trained on: each fills it.
void write_texts(const fs::path& path) {
  static const char* kWords[] = {"river",  "stone",  "light",  "morning", "garden", "window",
                                 "letter", "winter", "market", "bridge",  "silver", "forest",
                                 "music",  "summer", "paper",  "castle"};
  std::ofstream out(path);
  Draw draw;
  for (int row = 0; row < kRows; ++row) {
    std::string text = kWords[draw.below(16)];
    for (int word = 0; word < 2 * kSftTokens; ++word)
      text += std::string(" ") + kWords[draw.below(16)];
    out << ordered_json{{"messages",
                         {{{"role", "user"}, {"content", "Go on."}},
                          {{"role", "assistant"}, {"content", text}}}}}
               .dump()
        << "\n";
  }
}

void write_toy(const fs::path& folder) {
  std::ofstream out(folder / "toy.jsonl");
  const rl::Dataset rows = rl::make_toy_dataset(
      {.task = rl::ToyTask::kSort, .rows = kRows, .letters = 16, .length = 15, .seed = 1});
  for (std::int64_t index = 0; index < rows.size(); ++index) {
    const auto row = rows.read(index);
    if (!row.ok()) bench::fail(row.status().to_string());
    out << ordered_json{{"data_source", "toy"},
                        {"prompt", row->prompt},
                        {"reward_model", {{"style", "rule"}, {"ground_truth", row->ground_truth}}}}
               .dump()
        << "\n";
  }
  const auto made = rl::make_toy_model(folder / "toy_model", {.layers = 6,
                                                              .hidden_size = 320,
                                                              .heads = 5,
                                                              .kv_heads = 5,
                                                              .intermediate_size = 864,
                                                              .positions = 64,
                                                              .seed = 1});
  if (!made.ok()) bench::fail(made.to_string());
}

fs::path programs() { return fs::read_symlink("/proc/self/exe").parent_path(); }

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

struct Run {
  double first_step_s = 0;
  std::vector<ordered_json> steps;  // metrics
};

// Starts the command as a user does, and looks for the first step's line while it runs.
Run run(const std::vector<std::string>& arguments, const fs::path& folder) {
  fs::remove_all(folder);
  const fs::path metrics = folder / "metrics.jsonl";
  const fs::path output = folder.string() + ".log";
  const auto begin = bench::Clock::now();
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
      result.first_step_s = bench::seconds_since(begin);
    std::this_thread::sleep_for(std::chrono::milliseconds(result.first_step_s == 0 ? 5 : 50));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    bench::fail("the run failed; what it said is in " + output.string());
  std::ifstream in(metrics);
  for (std::string line; std::getline(in, line);)
    result.steps.push_back(ordered_json::parse(line)["data"]);
  if (result.steps.size() < 2)
    bench::fail("fewer than two steps; what the run said is in " + output.string());
  return result;
}

double median_of(const Run& run, const char* metric) {
  std::vector<double> values;
  for (std::size_t step = 1; step < run.steps.size(); ++step)
    values.push_back(run.steps[step].value(metric, 0.0));
  return bench::median(values);
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
  fs::path folder = fs::temp_directory_path() / "bench_trainer";
  std::string model, suites = "grpo,sft,toy";
  bool json = false, make = false;
  std::size_t steps = 6;

  bool wants(const std::string& suite) const {
    return ("," + suites + ",").find("," + suite + ",") != std::string::npos;
  }
};

Options read_options(int argc, char** argv) {
  Options options;
  std::vector<char*> rest{argv[0]};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&] {
      return i + 1 < argc ? std::string(argv[++i])
                          : (bench::fail(argument + " needs a value"), std::string());
    };
    if (argument == "--model")
      options.model = value();
    else if (argument == "--folder")
      options.folder = value();
    else if (argument == "--suite")
      options.suites = value();
    else
      rest.push_back(argv[i]);
  }
  bench::read_options(static_cast<int>(rest.size()), rest.data(),
                      {{"--model FOLDER, --folder FOLDER, --suite LIST", std::monostate{}},
                       {"--steps", &options.steps},
                       {"--make", &options.make},
                       {"--json", &options.json}});
  options.folder = fs::absolute(options.folder);
  return options;
}

/// The arguments of a suite's run.
std::vector<std::string> arguments_of(const std::string& suite, const Options& options) {
  const fs::path& folder = options.folder;
  const std::string model = options.model.empty() ? "" : fs::absolute(options.model).string();
  std::vector<std::string> arguments = {
      suite == "sft" ? "sft" : "train",
      "trainer.total_training_steps=" + std::to_string(options.steps),
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

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  fs::create_directories(options.folder);
  write_sums(options.folder / "sums.jsonl");
  write_texts(options.folder / "texts.jsonl");
  write_toy(options.folder);
  if (options.make) return 0;
  if (options.model.empty() && (options.wants("grpo") || options.wants("sft")))
    bench::fail("--model names the model of the suites grpo and sft; --suite toy needs none");
  Report report(options.json);
  report.values = {{"machine", bench::machine()},
                   {"commit", bench::commit()},
                   {"load_average_before", bench::proc_value("/proc/loadavg", "").substr(0, 4)},
                   {"steps", options.steps}};
  struct Suite {
    const char* name;
    const char* unit;
    double count;  // of units a step; 0: as the run says
  };
  for (const Suite& suite :
       {Suite{"grpo", "samples", 16}, {"sft", "tokens", 0}, {"toy", "samples", 64}}) {
    if (!options.wants(suite.name)) continue;
    const std::vector<std::string> arguments = arguments_of(suite.name, options);
    report.add(suite.name, arguments, run(arguments, options.folder / suite.name), suite.unit,
               suite.count);
  }
  if (options.json) std::printf("%s\n", report.values.dump(2).c_str());
  return 0;
}
