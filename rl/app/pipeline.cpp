#include "rl/app/pipeline.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "rl/app/command_line.h"
#include "rl/app/interrupt_watch.h"
#include "rl/config/check.h"
#include "rl/config/yaml.h"
#include "rl/data/row_source.h"
#include "rl/run/pipeline_file.h"
#include "rl/weights/atomic_file.h"
#include "runtime/core/ids.h"
#include "runtime/process/spawn.h"
#include "runtime/transport/file_descriptor.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

constexpr const char* kConfigFile =
    "stage.yaml";  // in the stage's folder: its keys as they were run

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return in ? text.str() : std::string();
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

// Files to train on that no stage makes have to be there before the first one runs.
Status check_data(const PipelineFile& pipeline, const PipelineStage& stage,
                  const ordered_json& config) {
  const auto files = config.find("data.train_files");
  if (files == config.end() || config.contains("data.custom_cls.path") ||
      fs::exists(stage.folder / kStageDoneFile))
    return {};  // a class of the user's reads them, or no code does any more
  for (const ordered_json& file : files->is_array() ? *files : ordered_json::array({*files})) {
    if (!file.is_string()) continue;
    const std::string& name = file.get_ref<const std::string&>();
    std::error_code error;
    if (name.empty() || name.find("${") != std::string::npos ||
        fs::exists(expand_home(name), error) || stage_that_makes(pipeline, name) != nullptr)
      continue;
    return runtime::not_found("stage " + stage.name + ": data.train_files: " + name + ": " +
                              (error ? error.message() : "No such file or directory"));
  }
  return {};
}

// A new file. Other users, who may have put a link at any name that they can guess, cannot guess
// it.
fs::path temporary_file() {
  return fs::temp_directory_path() /
         ("starling_pipeline_" + runtime::JobId::random().hex() + ".yaml");
}

// What of a stage's keys its command would refuse, with the lines that they are in.
Status check_keys(const PipelineStage& stage, const ordered_json& config) {
  ConfigSources sources;
  sources.keys = find_key_table(stage.command);
  const fs::path file = temporary_file();
  Status status = write_file_atomically(file, write_yaml(config));
  if (!status.ok()) return status;
  sources.file = file;
  const Result<ConfigCheck> checked = check_config(sources);
  std::error_code ignored;
  fs::remove(file, ignored);
  if (!checked.ok()) return checked.status();
  std::string lines;
  for (const KeyCheck& key : checked->keys) {
    if (key.verdict != Judgement::Verdict::kRefused && key.verdict != Judgement::Verdict::kInvalid)
      continue;
    std::string origin;
    std::string meaning = key.meaning;
    for (const PipelineKey& own : stage.keys) {
      if (own.key == key.written) origin = own.origin;
    }
    if (const std::size_t prefix = meaning.find(file.string()); prefix == 0)
      meaning.erase(0, meaning.find(": ") + 2);
    lines += (lines.empty() ? "" : "\n") + (origin.empty() ? std::string() : origin + ": ") +
             "stage " + stage.name + ": " + meaning;
  }
  return lines.empty() ? Status() : runtime::invalid_argument(std::move(lines));
}

bool keeps_no_weights(const PipelineStage& stage) {
  bool never = false;
  for (const PipelineKey& key : stage.keys) {
    if (key.key == "trainer.save_freq") never = key.value == 0 || key.value == false;
  }
  return never;
}

// What a stage takes from one that is told to keep nothing would be missed when that has run.
Status check_outputs(const PipelineFile& pipeline, const PipelineStage& stage) {
  for (const PipelineKey& key : stage.keys) {
    for (const auto& [name, what] : stage_references(key.value)) {
      if (what == "folder" || what.starts_with("best_")) continue;
      for (const PipelineStage& other : pipeline.stages) {
        if (other.name != name || !keeps_no_weights(other)) continue;
        return runtime::invalid_argument(
            key.origin + ": stage " + stage.name + ": " + key.key + " is the " + what +
            " of stage " + name +
            ", which keeps none: set its trainer.save_freq to -1 (saved at "
            "the end) or above 0");
      }
    }
  }
  return {};
}

// What the signal handler may touch.
std::atomic<pid_t> present_child{0};
std::atomic<bool> interrupted{false};

void pass_on(int signal) {
  interrupted = true;
  if (const pid_t child = present_child; child > 0) pass_on_signal(child, signal);
}

// While it lives, SIGINT, SIGTERM and SIGHUP (unless it is ignored) go to the stage that runs,
// which decides what they are to it. No further stage is begun. One at a time in a process.
class SignalRelay {
 public:
  SignalRelay() {
    interrupted = false;
    struct sigaction forward = {};
    forward.sa_handler = pass_on;
    ::sigaction(SIGINT, &forward, &interrupt_);
    ::sigaction(SIGTERM, &forward, &terminate_);
    ::sigaction(SIGHUP, nullptr, &hang_up_);
    if (hang_up_.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &forward, nullptr);
  }
  ~SignalRelay() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
    ::sigaction(SIGHUP, &hang_up_, nullptr);
  }
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  // Those that were ignored before, and are in a stage.
  std::vector<int> ignored_signals() const {
    std::vector<int> ignored;
    if (interrupt_.sa_handler == SIG_IGN) ignored.push_back(SIGINT);
    if (terminate_.sa_handler == SIG_IGN) ignored.push_back(SIGTERM);
    return ignored;
  }

 private:
  struct sigaction interrupt_ = {}, terminate_ = {}, hang_up_ = {};
};

// Runs `starling-rl ARGUMENTS` to its end, in this group of processes. So what stops, continues or
// kills the group does it to the stage, too. If this process alone is killed, the stage is asked to
// end. `quiet`: what it prints is of no interest. kCancelled: an interrupt came before it was
// begun.
Status run_child(const std::vector<std::string>& arguments, const SignalRelay* relay,
                 bool quiet = false) {
  std::error_code error;
  const std::string program = fs::read_symlink("/proc/self/exe", error).string();
  if (error) return runtime::errno_status(error.value(), "/proc/self/exe");
  runtime::SpawnSpec spec;
  spec.program = program;
  spec.argv = arguments;
  spec.argv.insert(spec.argv.begin(), program);
  spec.setup.death_signal = SIGTERM;
  if (relay != nullptr) spec.setup.ignored_signals = relay->ignored_signals();
  std::cout.flush();
  const runtime::FileDescriptor nothing(quiet ? ::open("/dev/null", O_WRONLY | O_CLOEXEC) : -1);
  if (nothing) spec.setup.descriptors.push_back({nothing.get(), STDOUT_FILENO});
  sigset_t held, mask;
  ::sigemptyset(&held);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&held, signal);
  ::pthread_sigmask(SIG_BLOCK, &held, &mask);  // until it is known whom to pass them on to
  if (interrupted) {
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    return runtime::cancelled("interrupted");
  }
  spec.setup.signal_mask = mask;
  Result<runtime::SpawnedProcess> child = runtime::spawn_process(spec);
  present_child = child.ok() ? child->pid() : 0;
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  if (!child.ok()) return child.status();
  child->await_end();
  present_child = 0;  // before its number is free
  const runtime::DeathCause cause = child->reap();
  if (cause.signal != 0)
    return runtime::internal_error("ended by signal " + std::to_string(cause.signal));
  if (cause.exit_code != 0)
    return runtime::internal_error("ended with exit code " + std::to_string(cause.exit_code));
  return {};
}

enum class Progress { kComplete, kChanged, kBegun, kNew };

Progress progress_of(const PipelineStage& stage, const std::optional<std::string>& keys) {
  std::error_code ignored;
  const fs::path done = stage.folder / kStageDoneFile;
  if (fs::exists(done, ignored))
    return keys && read_text(done) == *keys ? Progress::kComplete : Progress::kChanged;
  return fs::exists(stage.folder / kConfigFile, ignored) ? Progress::kBegun : Progress::kNew;
}

const char* name_of(Progress progress) {
  switch (progress) {
    case Progress::kComplete: return "complete";
    case Progress::kChanged: return "complete, with other keys";
    case Progress::kBegun: return "begun";
    case Progress::kNew: return "to be run";
  }
  return "";
}

Status changed(const PipelineStage& stage) {
  return runtime::invalid_argument(
      "stage " + stage.name + " was completed with other keys or other inputs (" +
      (stage.folder / kStageDoneFile).string() + "): put them back, or remove " +
      stage.folder.string() + " to run it again");
}

/// What each stage's command is given before its keys: the cluster.
using ClusterArguments = std::vector<std::string>;

// What the dry run of the stage's command says of these keys.
Status judge(const PipelineStage& stage, const ordered_json& config,
             const ClusterArguments& cluster, const SignalRelay* relay) {
  const fs::path file = temporary_file();
  Status status = write_file_atomically(file, write_yaml(config));
  if (!status.ok()) return status;
  std::vector<std::string> arguments = {stage.command, "--dry-run", "--config", file.string()};
  arguments.insert(arguments.end(), cluster.begin(), cluster.end());
  status = run_child(arguments, relay, /*quiet=*/relay != nullptr);
  std::error_code ignored;
  fs::remove(file, ignored);
  return status.with_context("stage " + stage.name);
}

// Each stage's state, and what its command says of it. What is yet to be made has a stand-in.
Status dry_run(const PipelineFile& pipeline, const ClusterArguments& cluster) {
  bool waits = false;  // for an earlier stage
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    const PipelineStage& stage = pipeline.stages[i];
    const Result<ordered_json> config = stage_config(pipeline, stage, /*placeholders=*/false);
    const std::optional<std::string> keys =
        config.ok() ? std::optional(write_yaml(*config)) : std::nullopt;
    const Progress progress = progress_of(stage, keys);
    std::cout << "stage " << i + 1 << " of " << pipeline.stages.size() << ": " << stage.name
              << " (starling " << stage.command << "): " << name_of(progress) << "\n  "
              << stage.folder.string() << "\n";
    if (progress == Progress::kComplete) continue;
    if (progress == Progress::kChanged && !waits) return changed(stage);
    const Result<StagePreview> preview =
        config.ok() ? StagePreview{.config = *config} : preview_stage(pipeline, stage);
    if (waits || !config.ok()) {
      for (const PipelineKey& key : stage.keys) {
        for (const auto& [name, what] : stage_references(key.value))
          std::cout << "  " << key.key << ": the " << what << " of stage " << name << "\n";
      }
    }
    waits = true;
    if (!preview.ok()) {
      std::cout << "  not judged yet: " << preview.status().message() << "\n";
      continue;
    }
    for (const std::string& line : preview->stand_ins)
      std::cout << "  judged with " << line << "\n";
    const Status judged = judge(stage, preview->config, cluster, /*relay=*/nullptr);
    if (!judged.ok()) return judged;
  }
  return {};
}

// What later stages would refuse is refused before the first one runs, which judges itself.
Status judge_later_stages(const PipelineFile& pipeline, const ClusterArguments& cluster,
                          const SignalRelay& relay) {
  bool is_first = true;
  for (const PipelineStage& stage : pipeline.stages) {
    const Result<ordered_json> config = stage_config(pipeline, stage, /*placeholders=*/false);
    const std::optional<std::string> keys =
        config.ok() ? std::optional(write_yaml(*config)) : std::nullopt;
    if (progress_of(stage, keys) == Progress::kComplete) continue;
    if (std::exchange(is_first, false)) continue;
    const Result<StagePreview> preview =
        config.ok() ? StagePreview{.config = *config} : preview_stage(pipeline, stage);
    if (!preview.ok()) continue;  // not before it is its turn
    const Status judged = judge(stage, preview->config, cluster, &relay);
    if (!judged.ok()) return judged.with_context("before any stage runs");
  }
  return {};
}

Status run(const PipelineFile& pipeline, const ClusterArguments& cluster) {
  const SignalRelay relay;
  if (const Status judged = judge_later_stages(pipeline, cluster, relay); !judged.ok())
    return judged;
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    const PipelineStage& stage = pipeline.stages[i];
    const std::string title = "stage " + std::to_string(i + 1) + " of " +
                              std::to_string(pipeline.stages.size()) + ": " + stage.name;
    const Result<ordered_json> config = stage_config(pipeline, stage, /*placeholders=*/false);
    if (!config.ok()) return config.status();
    const std::string keys = write_yaml(*config);
    const Progress progress = progress_of(stage, keys);
    if (progress == Progress::kChanged) return changed(stage);
    if (progress == Progress::kComplete) {
      std::cout << title << ": complete\n";
      continue;
    }
    std::cout << title << ": starling " << stage.command << " --config "
              << (stage.folder / kConfigFile).string()
              << (progress == Progress::kBegun ? " (continues)" : "") << "\n";
    std::error_code error;
    fs::create_directories(stage.folder, error);
    if (error) return runtime::errno_status(error.value(), "making " + stage.folder.string());
    Status status = write_file_atomically(stage.folder / kConfigFile, keys);
    if (!status.ok()) return status;
    std::vector<std::string> arguments = {stage.command, "--config",
                                          (stage.folder / kConfigFile).string()};
    arguments.insert(arguments.end(), cluster.begin(), cluster.end());
    const auto begin = std::chrono::steady_clock::now();
    status = run_child(arguments, &relay);
    if (!status.ok())
      return status.with_context("stage " + stage.name + " (the same command continues from here)");
    status = write_file_atomically(stage.folder / kStageDoneFile, keys);
    if (!status.ok()) return status;
    std::cout
        << title << ": done in "
        << seconds_text(
               std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count())
        << "\n\n";
  }
  return {};
}

}  // namespace

int pipeline_command(int argc, char** argv) {
  CLI::App app(
      "Runs the stages of a file in order, each with the results of the earlier ones; continues "
      "where "
      "it was cut off.",
      "starling pipeline");
  app.footer(
      "Example:\n  folder: runs/toy\n  stages:\n    sft:\n      data: {dataset_name: toy}\n      "
      "model.path: toy\n    rl:\n      command: train\n      data: {dataset_name: toy}\n"
      "      actor_rollout_ref.model.path: ${stages.sft.model}\nA stage also has .adapter, "
      ".checkpoint and .folder, and with trainer.save_best .best_model, .best_adapter and "
      ".best_checkpoint.");
  std::string file;
  std::vector<std::string> overrides;
  std::string address;
  bool own_clusters = false;
  bool dry = false;
  app.add_option("file", file, "YAML file")->required()->type_name("FILE");
  app.add_option("overrides", overrides,
                 "STAGE.key=value, folder=DIR: go before what the file says")
      ->type_name("OVERRIDE");
  app.add_option("--address", address,
                 "HOST:PORT of a node of the cluster, or private; default: STARLING_ADDRESS, then "
                 "the last `starling start`")
      ->type_name("ADDRESS");
  app.add_flag("--private", own_clusters,
               "start a cluster on this machine for each stage, for as long as it runs, whichever "
               "others run")
      ->excludes("--address");
  app.add_flag("--dry-run", dry,
               "print which stages would run and their configuration; start nothing");
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  const Result<PipelineFile> pipeline = PipelineFile::load(file, overrides);
  if (!pipeline.ok()) return fail(pipeline.status());
  // A mistake in the last stage is told before the first is run.
  for (const PipelineStage& stage : pipeline->stages) {
    const Result<ordered_json> config = stage_config(*pipeline, stage, /*placeholders=*/true);
    if (!config.ok()) return fail(config.status());
    if (const Status status = check_keys(stage, *config); !status.ok()) return fail(status);
    if (const Status status = check_data(*pipeline, stage, *config); !status.ok())
      return fail(status);
    if (const Status status = check_outputs(*pipeline, stage); !status.ok()) return fail(status);
  }
  ClusterArguments cluster;
  if (own_clusters) cluster = {"--private"};
  if (!address.empty()) cluster = {"--address", address};
  const Status status = dry ? dry_run(*pipeline, cluster) : run(*pipeline, cluster);
  return status.ok() ? 0 : fail(status);
}

}  // namespace rl
