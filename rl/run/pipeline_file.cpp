#include "rl/run/pipeline_file.h"

#include <algorithm>
#include <optional>
#include <regex>

#include "rl/checkpoint/checkpoint.h"
#include "rl/config/key_table.h"
#include "rl/config/override.h"
#include "rl/config/yaml.h"
#include "rl/run/stage_trainer.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

constexpr const char* kFolderKey = "trainer.default_local_dir";
constexpr const char* kOutputs[] = {"model",        "adapter",         "checkpoint", "best_model",
                                    "best_adapter", "best_checkpoint", "folder"};
constexpr std::string_view kBestPrefix = "best_";

const std::regex& reference_pattern() {
  static const std::regex pattern(R"(\$\{stages\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_.-]+)\})");
  return pattern;
}

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
}

// Something wrong with a line of the file.
Status wrong(const std::string& origin, const std::string& what) {
  return invalid_argument(origin + ": " + what);
}

PipelineStage* find_stage(PipelineFile& pipeline, std::string_view name) {
  const auto found = std::find_if(pipeline.stages.begin(), pipeline.stages.end(),
                                  [&](const PipelineStage& stage) { return stage.name == name; });
  return found == pipeline.stages.end() ? nullptr : &*found;
}

// Takes those out of `keys` that `over`, which goes before them, sets by another name.
void drop_other_names(const PipelineStage& stage, std::vector<PipelineKey>& keys,
                      const PipelineKey& over) {
  const KeyTable* table = find_key_table(stage.command);
  if (table == nullptr) return;
  const std::string key = table->canonical(over.key);
  if (over.value.is_null() && key != over.key) return;  // an older name that is switched off
  std::erase_if(keys, [&](const PipelineKey& one) {
    return one.key != over.key && table->canonical(one.key) == key;
  });
}

// Puts the keys of a config file before those that are there; its folder is not the stage's.
Status add_config_file(PipelineStage& stage, const fs::path& file, const std::string& origin) {
  const Result<std::vector<YamlEntry>> entries = read_yaml_file(file);
  if (!entries.ok()) return entries.status().with_context(origin + ": config");
  std::vector<PipelineKey> keys;
  for (const YamlEntry& entry : *entries) {
    if (entry.key != kFolderKey)
      keys.push_back({entry.key, entry.value, file.string() + ":" + std::to_string(entry.line)});
  }
  for (const PipelineKey& own : stage.keys) drop_other_names(stage, keys, own);
  stage.keys.insert(stage.keys.begin(), keys.begin(), keys.end());
  return {};
}

// "stages.NAME.KEY" of the file.
Status add_entry(PipelineFile& pipeline, const YamlEntry& entry, const std::string& origin,
                 std::vector<std::pair<std::string, PipelineKey>>& configs) {
  const std::string rest = entry.key.substr(entry.key.find('.') + 1);
  const std::size_t dot = rest.find('.');
  const std::string name = rest.substr(0, dot);
  if (!is_name(name))
    return wrong(origin, "a stage's name has letters, digits, '_' and '-', not '" + name + "'");
  PipelineStage* stage = find_stage(pipeline, name);
  if (stage == nullptr) {
    pipeline.stages.push_back({.name = name, .command = name, .folder = {}, .keys = {}});
    stage = &pipeline.stages.back();
  }
  if (dot == std::string::npos) {
    if (entry.value.is_null() || (entry.value.is_object() && entry.value.empty())) return {};
    return wrong(origin, "stage " + name + " must be a dictionary of keys");
  }
  const std::string key = rest.substr(dot + 1);
  if (key != "command" && key != "config") {
    stage->keys.push_back({key, entry.value, origin});
    return {};
  }
  if (!entry.value.is_string())
    return wrong(origin, "stage " + name + ": " + key + " must be a text");
  if (key == "command") stage->command = entry.value.get<std::string>();
  if (key == "config") configs.push_back({name, {key, entry.value, origin}});
  return {};
}

// "STAGE.key=value" or "folder=value" of a command line.
Status add_override(PipelineFile& pipeline, const std::string& text) {
  const std::string origin = "override '" + text + "'";
  const Result<Override> parsed = parse_override(text);
  if (!parsed.ok()) return parsed.status();  // which names it
  if (parsed->kind == OverrideKind::kDelete)
    return wrong(origin, "a key of a stage is set, not removed");
  if (parsed->key == "folder") {
    if (!parsed->value.is_string()) return wrong(origin, "folder must be a text");
    pipeline.folder = parsed->value.get<std::string>();
    return {};
  }
  const std::size_t dot = parsed->key.find('.');
  PipelineStage* stage = find_stage(pipeline, std::string_view(parsed->key).substr(0, dot));
  if (stage == nullptr || dot == std::string::npos) {
    std::string names;
    for (const PipelineStage& known : pipeline.stages)
      names += (names.empty() ? "" : ", ") + known.name;
    return wrong(origin, "write STAGE.key=value; the stages are " + names);
  }
  const PipelineKey over{parsed->key.substr(dot + 1), parsed->value, origin};
  drop_other_names(*stage, stage->keys, over);
  stage->keys.push_back(over);
  return {};
}

// What is set last holds. Null where it is not set.
ordered_json value_of(const PipelineStage& stage, std::string_view name) {
  const auto set = std::find_if(stage.keys.rbegin(), stage.keys.rend(),
                                [&](const PipelineKey& key) { return key.key == name; });
  return set == stage.keys.rend() ? ordered_json() : set->value;
}

bool keeps_best(const PipelineStage& stage) {
  return !value_of(stage, "trainer.save_best").is_null();
}

bool is_below(const fs::path& file, const fs::path& folder) {
  const fs::path from = fs::absolute(file).lexically_normal().lexically_relative(
      fs::absolute(folder).lexically_normal());
  return !from.empty() && *from.begin() != "..";
}

// Where the keys of the model that a stage trains are.
std::string model_section(const PipelineStage& stage) {
  return stage.command == "train" ? "actor_rollout_ref.model." : "model.";
}

// Whether any of its keys may ask for an adapter, of whichever command it is.
bool may_train_adapter(const PipelineStage& stage) {
  const auto speaks_of_one = [](const std::string& text) {
    return text.find("lora") != std::string::npos || text.find("adapter") != std::string::npos;
  };
  return std::any_of(stage.keys.begin(), stage.keys.end(), [&](const PipelineKey& key) {
    return speaks_of_one(key.key) || speaks_of_one(key.value.dump());
  });
}

Status check_references(const PipelineFile& pipeline, std::size_t index) {
  const PipelineStage& stage = pipeline.stages[index];
  for (const PipelineKey& key : stage.keys) {
    for (const auto& [name, what] : stage_references(key.value)) {
      const std::string at =
          "stage " + stage.name + ": " + key.key + ": ${stages." + name + "." + what + "}: ";
      const auto end = pipeline.stages.begin() + static_cast<std::ptrdiff_t>(index);
      const auto other = std::find_if(
          pipeline.stages.begin(), end,
          [&, &wanted = name](const PipelineStage& candidate) { return candidate.name == wanted; });
      if (other == end)
        return wrong(key.origin, at + "no stage of that name comes before this one");
      const std::string& output = what;
      if (std::none_of(std::begin(kOutputs), std::end(kOutputs),
                       [&](const char* known) { return output == known; }))
        return wrong(key.origin, at + "a stage has model, adapter, checkpoint, each also with "
                                      "best_ before it, and folder");
      if (output.starts_with(kBestPrefix) && !keeps_best(*other))
        return wrong(key.origin, at + "set trainer.save_best in stage " + name +
                                     ": the metric that its best checkpoint is to be known by");
      if (output.ends_with("adapter") && !may_train_adapter(*other))
        return wrong(key.origin,
                     at + "stage " + name + " trains all weights: take ${stages." + name +
                         (output.starts_with(kBestPrefix) ? ".best_model}" : ".model}") +
                         ", or set its lora_rank");
    }
  }
  return {};
}

// A value with its references replaced by what `output` says of them.
template <class Output>
Result<ordered_json> replace_references(const ordered_json& value, Output output) {
  if (value.is_array()) {
    ordered_json items = ordered_json::array();
    for (const ordered_json& item : value) {
      Result<ordered_json> replaced = replace_references(item, output);
      if (!replaced.ok()) return replaced;
      items.push_back(std::move(*replaced));
    }
    return items;
  }
  if (!value.is_string()) return value;
  std::string text = value.get<std::string>();
  std::smatch match;
  while (std::regex_search(text, match, reference_pattern())) {
    const Result<std::string> found = output(match[1].str(), match[2].str());
    if (!found.ok()) return found.status();
    text = match.prefix().str() + *found + match.suffix().str();
  }
  return ordered_json(std::move(text));
}

// That no later checkpoint than that of `step` was passed over: the one before the last is not what
// the stage made.
Status check_last_checkpoint(const PipelineStage& stage, std::int64_t step) {
  const auto there = list_checkpoints(stage.folder);
  const std::int64_t last = std::max(latest_checkpoint_step(stage.folder).value_or(0),
                                     there.empty() ? 0 : there.front().first);
  if (last <= step) return {};
  const Status whole = verify_checkpoint(checkpoint_path(stage.folder, last));
  if (whole.ok()) return {};
  return whole.with_context(
      "stage " + stage.name + ": its last checkpoint is damaged or gone (remove " +
      (stage.folder / kStageDoneFile).string() +
      " and what is left of the checkpoint, and it is made again from the one before)");
}

}  // namespace

Result<PipelineFile> PipelineFile::load(const fs::path& file,
                                        const std::vector<std::string>& overrides) {
  const Result<std::vector<YamlEntry>> entries = read_yaml_file(file);
  if (!entries.ok()) return entries.status();
  PipelineFile pipeline{.folder = fs::path("checkpoints") / "pipeline" / file.stem(), .stages = {}};
  std::vector<std::pair<std::string, PipelineKey>> configs;
  for (const YamlEntry& entry : *entries) {
    const std::string origin = file.string() + ":" + std::to_string(entry.line);
    Status status;
    if (entry.key == "folder") {
      if (!entry.value.is_string()) return wrong(origin, "folder must be a text");
      pipeline.folder = entry.value.get<std::string>();
    } else if (entry.key.starts_with("stages.")) {
      status = add_entry(pipeline, entry, origin, configs);
    } else if (entry.key == "stages") {
      status = wrong(origin, "stages must be a dictionary of stages, by name");
    } else {
      status = wrong(origin, "a pipeline has folder and stages, not '" + entry.key + "'");
    }
    if (!status.ok()) return status;
  }
  if (pipeline.stages.empty()) return invalid_argument(file.string() + ": no stages");
  for (const auto& [name, config] : configs) {
    const fs::path given = config.value.get<std::string>();
    const Status added =
        add_config_file(*find_stage(pipeline, name),
                        given.is_absolute() ? given : file.parent_path() / given, config.origin);
    if (!added.ok()) return added;
  }
  for (const std::string& text : overrides) {
    if (const Status status = add_override(pipeline, text); !status.ok()) return status;
  }
  std::error_code error;
  pipeline.folder = fs::absolute(pipeline.folder, error);
  if (error) return runtime::errno_status(error.value(), "folder " + pipeline.folder.string());
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    PipelineStage& stage = pipeline.stages[i];
    const KeyTable* table = find_key_table(stage.command);
    if (table == nullptr)
      return invalid_argument(file.string() + ": stage " + stage.name + ": there is no command '" +
                              stage.command + "' to train with: set command");
    if (const Status status = check_references(pipeline, i); !status.ok()) return status;
    const auto own = std::find_if(stage.keys.rbegin(), stage.keys.rend(),
                                  [&](const PipelineKey& key) { return key.key == kFolderKey; });
    if (own == stage.keys.rend()) {
      stage.folder = pipeline.folder / stage.name;
      stage.keys.push_back({kFolderKey, stage.folder.string(), file.string()});
    } else if (!own->value.is_string() ||
               own->value.get<std::string>().find("${") != std::string::npos) {
      return wrong(own->origin, "stage " + stage.name + ": " + kFolderKey +
                                    " must be a path without references");
    } else {
      stage.folder = fs::absolute(own->value.get<std::string>(), error).lexically_normal();
    }
    for (std::size_t before = 0; before < i; ++before) {
      if (pipeline.stages[before].folder != stage.folder) continue;
      return wrong(own == stage.keys.rend() ? file.string() : own->origin,
                   "stage " + stage.name + ": its folder " + stage.folder.string() +
                       " is that of stage " + pipeline.stages[before].name +
                       ": give it another one (" + kFolderKey + ")");
    }
  }
  return pipeline;
}

std::vector<std::pair<std::string, std::string>> stage_references(const ordered_json& value) {
  std::vector<std::pair<std::string, std::string>> found;
  if (value.is_array()) {
    for (const ordered_json& item : value) {
      const auto of_item = stage_references(item);
      found.insert(found.end(), of_item.begin(), of_item.end());
    }
  }
  if (!value.is_string()) return found;
  const std::string& text = value.get_ref<const std::string&>();
  for (std::sregex_iterator match(text.begin(), text.end(), reference_pattern()), end; match != end;
       ++match)
    found.emplace_back((*match)[1].str(), (*match)[2].str());
  return found;
}

Result<std::string> stage_output(const PipelineStage& stage, const std::string& what) {
  if (what == "folder") return stage.folder.string();
  const bool best = what.starts_with(kBestPrefix);
  const std::string kind = best ? what.substr(kBestPrefix.size()) : what;
  const Result<StageResult> result = find_stage_result(stage.folder, best);
  if (!result.ok()) {
    return result.status().with_context(
        "stage " + stage.name +
        (best
             ? " has no best checkpoint (trainer.save_best names the metric that it is the best "
               "by; without its folder it runs again)"
             : " has no complete checkpoint (trainer.save_freq says when one is saved; without its "
               "folder it runs again)"));
  }
  if (!best) {
    if (const Status last = check_last_checkpoint(stage, result->step); !last.ok()) return last;
  }
  if (kind == "checkpoint") return result->checkpoint.string();
  const fs::path& found = kind == "model" ? result->model : result->adapter;
  if (!found.empty()) return found.string();
  const std::string other = "${stages." + stage.name + (best ? ".best_" : ".");
  return runtime::not_found("stage " + stage.name +
                            (kind == "model" ? " trained an adapter: take " + other +
                                                   "adapter} and the model that it started from"
                                             : " trained all weights: take " + other + "model}"));
}

Result<ordered_json> stage_config(const PipelineFile& pipeline, const PipelineStage& stage,
                                  bool placeholders) {
  const auto output = [&](const std::string& name, const std::string& what) -> Result<std::string> {
    const auto other = std::find_if(
        pipeline.stages.begin(), pipeline.stages.end(),
        [&, &wanted = name](const PipelineStage& candidate) { return candidate.name == wanted; });
    const Result<std::string> found = stage_output(*other, what);
    if (found.ok() || !placeholders) return found;
    return (other->folder / ("the " + what + " to come")).string();
  };
  ordered_json flat = ordered_json::object();
  for (const PipelineKey& key : stage.keys) {
    Result<ordered_json> value = replace_references(key.value, output);
    if (!value.ok())
      return value.status().with_context("stage " + stage.name + ": " + key.key + " (" +
                                         key.origin + ")");
    flat[key.key] = std::move(*value);
  }
  return flat;
}

const PipelineStage* stage_that_makes(const PipelineFile& pipeline, const fs::path& file) {
  const auto makes = [&](const PipelineStage& stage) {
    const auto writes = [&](const PipelineKey& key) {
      return (key.key == "trainer.rollout_data_dir" || key.key == "trainer.validation_data_dir") &&
             key.value.is_string() && is_below(file, key.value.get<std::string>());
    };
    return is_below(file, stage.folder) ||
           std::any_of(stage.keys.begin(), stage.keys.end(), writes);
  };
  const auto found = std::find_if(pipeline.stages.begin(), pipeline.stages.end(), makes);
  return found == pipeline.stages.end() ? nullptr : &*found;
}

namespace {

// Makes a preview of one stage.
class Previewer {
 public:
  Previewer(const PipelineFile& pipeline, const PipelineStage& stage)
      : pipeline_(pipeline), stage_(stage) {}

  Result<StagePreview> make() && {
    for (const PipelineKey& key : stage_.keys) {
      if (const Status added = add(key); !added.ok())
        return added.with_context("stage " + stage_.name + ": " + key.key);
    }
    if (const Status here = check_files(); !here.ok())
      return here.with_context("stage " + stage_.name);
    if (!preview_.stand_ins.empty()) {  // there may be checkpoints of the model itself
      preview_.config["trainer.resume_mode"] = "disable";
      preview_.config.erase("trainer.resume_from_path");
    }
    return std::move(preview_);
  }

 private:
  const PipelineStage& named(const std::string& name) const {
    return *std::find_if(pipeline_.stages.begin(), pipeline_.stages.end(),
                         [&](const PipelineStage& one) { return one.name == name; });
  }

  // The model that a stage begins with; of an earlier one, the one that that begins with.
  Result<std::string> first_model(const PipelineStage& stage) const {
    const std::string key = model_section(stage) + "path";
    const Result<ordered_json> model = replace_references(
        value_of(stage, key), [&](const std::string& name, const std::string& what) {
          const Result<std::string> there = stage_output(named(name), what);
          return there.ok() ? there : first_model(named(name));
        });
    if (!model.ok()) return model.status();
    if (!model->is_string()) return runtime::not_found("stage " + stage.name + " has no " + key);
    return model->get<std::string>();
  }

  Status add(const PipelineKey& key) {
    bool is_left_out = false;
    Result<ordered_json> value = replace_references(
        key.value, [&](const std::string& name, const std::string& what) -> Result<std::string> {
          Result<std::string> there = stage_output(named(name), what);
          if (there.ok()) return there;
          if (what.ends_with("model")) return stand_in_model(key.key, name, what);
          is_left_out = key.key == "trainer.resume_from_path";
          if (what.ends_with("adapter")) is_left_out = stand_in_adapter(key.key, name, what);
          if (is_left_out) return std::string();
          return runtime::not_found("the " + what + " of stage " + name +
                                    " is not there before that has run");
        });
    if (!value.ok()) return value.status();
    if (is_left_out)
      preview_.config.erase(key.key);
    else
      preview_.config[key.key] = std::move(*value);
    return {};
  }

  Result<std::string> stand_in_model(const std::string& key, const std::string& name,
                                     const std::string& what) {
    Result<std::string> model = first_model(named(name));
    if (model.ok())
      preview_.stand_ins.push_back(key + ": " + *model + " in place of the " + what + " of stage " +
                                   name);
    return model;
  }

  // Whether the key is of an adapter to begin with, which a new one can stand for.
  bool stand_in_adapter(const std::string& key, const std::string& name, const std::string& what) {
    constexpr std::string_view kKey = "lora_adapter_path";
    if (!key.ends_with("." + std::string(kKey))) return false;
    const std::string section = key.substr(0, key.size() - kKey.size());
    for (const char* shape : {"lora_rank", "lora_alpha", "target_modules", "exclude_modules"}) {
      const ordered_json value = value_of(named(name), model_section(named(name)) + shape);
      if (!value.is_null()) preview_.config[section + shape] = value;
    }
    preview_.stand_ins.push_back(key + ": a new adapter in place of the " + what + " of stage " +
                                 name);
    return true;
  }

  // That no data are still to be made.
  Status check_files() const {
    for (const char* key : {"data.train_files", "data.val_files", "data.sft_files"}) {
      const auto files = preview_.config.find(key);
      if (files == preview_.config.end()) continue;
      for (const ordered_json& file : files->is_array() ? *files : ordered_json::array({*files})) {
        std::error_code ignored;
        if (!file.is_string() || fs::exists(file.get<std::string>(), ignored)) continue;
        const PipelineStage* maker = stage_that_makes(pipeline_, file.get<std::string>());
        if (maker != nullptr)
          return runtime::not_found(std::string(key) + ": " + file.get<std::string>() +
                                    " is made by stage " + maker->name);
      }
    }
    return {};
  }

  const PipelineFile& pipeline_;
  const PipelineStage& stage_;
  StagePreview preview_;
};

}  // namespace

Result<StagePreview> preview_stage(const PipelineFile& pipeline, const PipelineStage& stage) {
  return Previewer(pipeline, stage).make();
}

}  // namespace rl
