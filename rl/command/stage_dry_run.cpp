// What `--dry-run` says of a stage.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "rl/command/stage_command.h"
#include "rl/model/lora.h"
#include "rl/model/model_config.h"
#include "rl/train/memory_plan.h"
#include "rl/train/profile_options.h"
#include "rl/train/toy_model.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

// The toy model is made for the while; what is only on the hub is not fetched.
class DryModel {
 public:
  explicit DryModel(fs::path model) : path_(std::move(model)) {}
  ~DryModel() {
    std::error_code ignored;
    if (made_) fs::remove_all(path_, ignored);
  }
  DryModel(const DryModel&) = delete;
  DryModel& operator=(const DryModel&) = delete;

  Status prepare() {
    if (path_ != kToyModelName) return {};
    path_ = fs::temp_directory_path() / ("starling_toy_" + std::to_string(::getpid()));
    made_ = true;
    return make_toy_model(path_, {});
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool made_ = false;
};

Status print_stage_memory(const StageSetup& setup, const Stage& stage, std::ostream& out) {
  const Result<ModelConfig> model = ModelConfig::load(setup.model);
  if (!model.ok()) return model.status();
  const StageOptions& options = setup.options;
  const std::int64_t share = (options.batch_rows + setup.workers - 1) / setup.workers;
  const std::int64_t longest = std::min(options.tokens_max, model->max_position_embeddings);
  const std::int64_t limit = options.micro_batch.samples_max > 0
                                 ? options.micro_batch.samples_max * longest
                                 : std::max(options.micro_batch.tokens_max, longest);
  const std::int64_t forward = std::min(limit, share * longest);
  MemoryOptions memory{.forward_tokens = forward,
                       .output_tokens = forward,
                       .sequences = 0,
                       .positions = longest,
                       .recompute_layers = options.recompute_layers,
                       .bf16 = options.bf16};
  if (options.adapter) {
    const Result<LoraAdapter> adapter = options.adapter->folder.empty()
                                            ? LoraAdapter::create(*model, options.adapter->lora, 0)
                                            : LoraAdapter::load(*model, options.adapter->folder);
    if (!adapter.ok()) return adapter.status();
    memory.trained_elements = adapter->parameters().arena_size();
  }
  RoleMemory role{"worker", setup.workers, training_memory(*model, memory)};
  for (const fs::path& frozen : stage.frozen_models()) {
    const Result<ModelConfig> other = ModelConfig::load(frozen);
    if (!other.ok()) return other.status();
    std::int64_t bytes = 0;
    for (const MemoryPart& part : scoring_memory(*other, memory)) bytes += part.bytes;
    role.parts.push_back({"frozen model", bytes});
  }
  if (options.copies())
    role.parts.push_back(checkpoint_memory(memory.trained_elements >= 0 ? memory.trained_elements
                                                                        : weight_elements(*model)));
  role.parts.push_back(process_memory(/*trains=*/true));
  out << "memory of each process, at its peak:\n  worker x " << role.workers << ": "
      << bytes_text(role.total()) << " (";
  for (std::size_t i = 0; i < role.parts.size(); ++i)
    out << (i > 0 ? ", " : "") << role.parts[i].name << " " << bytes_text(role.parts[i].bytes);
  out << ")\n  all: " << bytes_text(role.total() * role.workers) << " over the nodes\n";
  return {};
}

}  // namespace

Status stage_dry_run(const Config& config, Stage& stage, std::ostream& out) {
  Result<StageOptions> options = StageOptions::from_config(config);
  if (!options.ok()) return options.status();
  const Result<SlotOptions> slots = SlotOptions::from_config(config);
  if (!slots.ok()) return slots.status();
  if (const auto profile = ProfileOptions::from_config(config, options->folder); !profile.ok())
    return profile.status();
  const Result<std::string> given = config.get_string("model.path");
  if (!given.ok()) return given.status();
  DryModel model(*given);
  if (const Status made = model.prepare(); !made.ok()) return made;
  for (const std::string& note : config.notes()) out << note << "\n";

  const StageSetup setup{.config = config,
                         .options = std::move(*options),
                         .model = model.path(),
                         .workers = slots->nodes * slots->per_node};
  if (const Status opened = stage.open(setup); !opened.ok()) return opened;
  if (const Status validation = setup.options.check_validation(config, stage.validates());
      !validation.ok())
    return validation;
  const Result<LrScheduleOptions> schedule = lr_schedule_from_config(config, kStageRole, 1);
  if (!schedule.ok()) return schedule.status();
  const std::int64_t in_epoch = stage.batches_per_epoch();
  const std::int64_t steps = setup.options.length.last(in_epoch);
  out << "a step:\n  " << setup.options.batch_rows << " rows of at most "
      << setup.options.tokens_max << " tokens, at most "
      << (setup.options.batch_rows + setup.workers - 1) / setup.workers << " on each of "
      << setup.workers << " workers\n"
      << "steps:\n  " << in_epoch << " an epoch, " << steps << " in all; "
      << (stage.validates() ? "validated" : "no validation data: set data.val_files to have some")
      << "\n"
      << "where:\n  " << slots->nodes << " node(s) with " << slots->per_node
      << " worker(s) each; checkpoints and logs in " << setup.options.folder.string() << "\n";
  const Result<std::string> row = stage.first_row();
  if (!row.ok()) return row.status();
  out << *row;
  return print_stage_memory(setup, stage, out);
}

}  // namespace rl
