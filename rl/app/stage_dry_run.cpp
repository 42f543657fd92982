// The output of `--dry-run` for a stage.
#include <algorithm>
#include <filesystem>

#include "rl/app/cached_models.h"
#include "rl/app/kept.h"
#include "rl/app/stage_command.h"
#include "rl/config/key_path.h"
#include "rl/run/profile_options.h"
#include "rl/run/stage_memory.h"
#include "rl/worker/compression_keys.h"
#include "rl/worker/frozen_sharding.h"
#include "rl/worker/fsdp_size.h"
#include "rl/worker/preference_objective.h"
#include "rl/worker/team_keys.h"
#include "rl/worker/toy_model.h"
#include "runtime/core/ids.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

// The keys of the models that stages load; a stage has some of them.
const std::vector<std::string> kModelKeys = {"model.path", "distillation.teacher.path",
                                             kReferencePath};

// The toy model is made for the while.
class DryModel {
 public:
  explicit DryModel(fs::path model) : path_(std::move(model)) {}
  ~DryModel() {
    std::error_code ignored;
    if (made_) fs::remove_all(path_, ignored);
  }
  DryModel(const DryModel&) = delete;
  DryModel& operator=(const DryModel&) = delete;

  // `seed`: a run's.
  Status prepare(std::uint64_t seed) {
    if (path_ != kToyModelName) return {};
    path_ = fs::temp_directory_path() / ("starling_toy_" + runtime::JobId::random().hex());
    made_ = true;
    return make_toy_model(path_, {.seed = seed});
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool made_ = false;
};

Status judge_stage_memory(StageSetup setup, const DataStage& stage, const SlotOptions& slots,
                          std::span<const NodeRoom> nodes, std::ostream& out) {
  const FitsNodes fits_nodes = [&](const RoleMemory& one) {
    return check_memory_fits(std::span(&one, 1), slots, nodes);
  };
  const ZeroChoice zero = settle_stage_zero(setup, stage, slots, fits_nodes);
  const Result<RoleMemory> role = stage_memory(setup, stage);
  if (!role.ok()) return role.status();
  out << "memory of each process" << (role->device_bytes > 0 ? " on the host" : "")
      << ", at its peak:\n  worker x " << role->workers << ": " << bytes_text(role->total())
      << " (";
  for (std::size_t i = 0; i < role->parts.size(); ++i)
    out << (i > 0 ? ", " : "") << role->parts[i].name << " " << bytes_text(role->parts[i].bytes);
  out << ")\n  all: " << bytes_text(memory_of_all(std::span(&*role, 1))) << " over the nodes\n";
  if (role->device_bytes > 0)
    out << "memory of each device (" << slots.device << "), at its peak:\n  "
        << bytes_text(role->device_bytes) << "\n";
  if (const std::string teams = teams_text(setup.config, kStageRole, setup.workers); !teams.empty())
    out << "  " << teams << "\n";
  if (const std::string groups = fsdp_size_text(setup.config, kStageRole, setup.workers);
      !groups.empty())
    out << "  " << groups << "\n";
  if (const std::string compression = compression_text(setup.config, setup.workers);
      !compression.empty())
    out << "  " << compression << "\n";
  if (const std::string frozen =
          frozen_sharding_text(setup.config, kStageReferenceRole, setup.workers);
      !frozen.empty() && !stage.frozen_models().empty())
    out << "  " << frozen << "\n";
  if (const auto warning = cpu_warning(slots, nodes)) out << "note: " << *warning << "\n";
  if (const Status enough = check_enough_nodes(slots, nodes); !enough.ok()) return enough;
  std::optional<std::string> tight;
  const Status fits = judge_stage_fit(setup, stage, fits_nodes, tight);
  const RowLengths rows = stage.row_lengths();
  const std::string of_data =
      "with the data's rows of up to " + std::to_string(rows.longest) + " tokens";
  if (const auto least = stage_memory(setup, stage, rows);
      least.ok() && least->total() < role->total())
    out << "  " << of_data << ": " << bytes_text(least->total()) << " each\n";
  if (const std::string text = zero.text(); !text.empty())
    out << "  " << (tight ? of_data + " " : "") << text << "\n";
  if (tight) out << "note: " << *tight << "\n";
  if (const auto unseen = unseen_rows_note(rows)) out << "note: " << *unseen << "\n";
  if (!fits.ok() || nodes.empty()) return fits;
  SlotOptions reserved = slots;
  reserved.memory = bounded_memory(slot_memory(std::span(&*role, 1), slots), slots, nodes);
  return plan_slots(reserved, nodes).status();
}

Config without_keys(const Config& config, const std::vector<std::string>& keys) {
  nlohmann::ordered_json tree = config.to_json();
  for (const std::string& key : keys) {
    if (nlohmann::ordered_json* place = make_place(tree, key)) *place = nullptr;
  }
  return config.with_tree(std::move(tree));
}

void print_step(const StageSetup& setup, std::ostream& out) {
  out << "a step:\n  " << setup.options.batch_rows << " rows of at most "
      << setup.options.tokens_max << " tokens, at most "
      << (setup.options.batch_rows + setup.workers - 1) / setup.workers << " on each of "
      << setup.workers << " workers\n";
}

void print_places(const StageSetup& setup, const SlotOptions& slots, std::ostream& out) {
  out << "where:\n  " << slots.nodes << " node(s) with " << slots.per_node << " worker(s) each\n"
      << "  checkpoints "
      << setup.options.save.text(setup.options.folder, setup.options.save_best.goal.metric)
      << "\n  configuration and logs in " << setup.options.folder.string() << "\n";
}

}  // namespace

Status stage_dry_run(const Config& named, DataStage& stage, std::ostream& out,
                     std::span<const NodeRoom> nodes) {
  const CachedModels models = find_cached_models(named, kModelKeys);
  // Another model than the one that is trained is left out where it is not here.
  const Config config =
      models.lacks("model.path") ? models.config : without_keys(models.config, models.missing);
  Result<StageOptions> options = StageOptions::from_config(config);
  if (!options.ok()) return options.status();
  const Result<SlotOptions> slots = SlotOptions::from_config(config);
  if (!slots.ok()) return slots.status();
  if (const auto profile = ProfileOptions::from_config(config, options->folder); !profile.ok())
    return profile.status();
  const Result<std::string> given = config.get_string("model.path");
  if (!given.ok()) return given.status();
  DryModel model(*given);
  if (const Status made = model.prepare(options->seed); !made.ok()) return made;
  for (const std::string& note : config.notes()) out << note << "\n";
  for (const std::string& note : models.notes) out << "note: " << note << "\n";

  const StageSetup setup{.config = config,
                         .options = std::move(*options),
                         .model = model.path(),
                         .workers = slots->nodes * slots->per_node};
  if (models.lacks("model.path")) {  // nothing can be read without the tokenizer
    print_step(setup, out);
    out << "steps, data and memory:\n  not known without the model\n";
    print_places(setup, *slots, out);
    return models.check();
  }
  for (const std::string& key : models.missing)
    out << "note: " << key << ": its memory is counted "
        << (key == kReferencePath ? "as if it were model.path" : "as none") << "\n";
  if (const Status opened = stage.open(setup); !opened.ok()) return opened;
  for (const std::string& warning : stage.warnings()) out << "note: " << warning << "\n";
  if (const Status validation = setup.options.check_validation(config, stage.validates());
      !validation.ok())
    return validation;
  const std::int64_t in_epoch = stage.batches_per_epoch();
  const std::int64_t steps = setup.options.length.last(in_epoch);
  const Result<LrScheduleOptions> schedule =
      lr_schedule_from_config(config, kStageRole, setup.options.length.scheduled(in_epoch));
  if (!schedule.ok()) return schedule.status();
  print_step(setup, out);
  out << "steps:\n  " << in_epoch << " an epoch, " << steps << " in all; "
      << (stage.validates() ? "validated" : "no validation data: set data.val_files to have some")
      << "\n"
      << "learning rate:\n  " << schedule_text(*schedule) << " (" << config.origin("optim.lr")
      << ")\n";
  print_places(setup, *slots, out);
  if (const Status resumes =
          print_resume(out, setup.options.resume, setup.options.folder, named, "model.path",
                       setup.model, setup.options.adapter.has_value());
      !resumes.ok())
    return resumes;
  const Result<std::string> row = stage.first_row();
  if (!row.ok()) return row.status();
  out << *row;
  const Status fits = judge_stage_memory(setup, stage, *slots, nodes, out);
  const Status reachable = models.check();
  if (fits.ok() || reachable.ok()) return fits.ok() ? reachable : fits;
  return Status(fits.code(), reachable.message() + "\n" + fits.message());
}

}  // namespace rl
