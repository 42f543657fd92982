#include "rl/config/config_builder.h"

#include <algorithm>

#include "rl/config/adapter_rates.h"
#include "rl/config/custom_choices.h"
#include "rl/config/idle_keys.h"
#include "rl/config/judge.h"
#include "rl/config/key_path.h"
#include "rl/config/keys.h"
#include "rl/config/nearest.h"
#include "rl/config/references.h"
#include "rl/config/yaml.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::ErrorCode;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

constexpr char kCommandLine[] = "the command line";
constexpr std::size_t kSuggestionsMax =
    10;  // of names near to unknown ones: who is wrong so often is at the wrong program, and
         // looking for them takes its time
constexpr std::ptrdiff_t kTreeDepthMax =
    64;  // what a tree is walked by, recursively, whether a file nests or a key has many parts

/// What Hydra itself reads: which files a configuration is made of, which class a section belongs
/// to, and where its logs go.
bool is_of_hydra(std::string_view key) {
  return key == "defaults" || key == "hydra" || key.starts_with("hydra.") ||
         key.starts_with("hydra/") || key.ends_with("._target_");
}

constexpr std::string_view kEstimator = "algorithm.adv_estimator";
constexpr const char* kGroupMeaning =
    "which of verl's files the defaults come from: the keys of all its back ends are known at once "
    "here";

/// Hydra's choice among the files of a group, of those whose names are sections here: verl's SFT
/// trainer has them.
bool is_group_choice(const Override& change, const KeyTable& keys) {
  if (change.kind == OverrideKind::kDelete || !change.value.is_string()) return false;
  const std::string& choice = change.value.get_ref<const std::string&>();
  if (!keys.is_section(change.key)) return false;
  if (change.key == "model") return choice == "hf_model";
  constexpr std::string_view kEngines[] = {"fsdp",       "megatron",  "veomni",
                                           "torchtitan", "automodel", "mindspeed"};
  return (change.key == "engine" || change.key == "optim") &&
         std::find(std::begin(kEngines), std::end(kEngines), choice) != std::end(kEngines);
}

/// Takes a key out of the tree; false when it is not there.
bool erase_place(ordered_json& tree, std::string_view key) {
  const std::size_t dot = key.find('.');
  const std::string part(key.substr(0, dot));
  if (!tree.is_object() || !tree.contains(part)) return false;
  if (dot == std::string_view::npos) return tree.erase(part) == 1;
  return erase_place(tree[part], key.substr(dot + 1));
}

/// The unresolved default of a key that has one.
const ordered_json* find_default(const KeyTable& keys, std::string_view key) {
  const ordered_json* at = &keys.defaults();
  for (std::size_t start = 0, dot = 0; dot != std::string_view::npos; start = dot + 1) {
    dot = key.find('.', start);
    at = &at->at(std::string(key.substr(start, dot == std::string_view::npos ? dot : dot - start)));
  }
  return at;
}

/// What is said of a key that was added with '+'.
std::string unknown_meaning(const std::string& key, const KeyTable& keys, bool suggests) {
  const std::vector<std::string> nearest =
      suggests ? nearest_keys(key, 1, keys) : std::vector<std::string>();
  return "unknown key" + (nearest.empty() ? "" : "; is " + nearest[0] + " meant?");
}

/// Whether it can be written as JSON, which is how configurations travel: its texts are UTF-8.
bool is_utf8(const ordered_json& value) {
  try {
    static_cast<void>(value.dump());
    return true;
  } catch (const ordered_json::exception&) {
    return false;
  }
}

/// A list that scripts quote twice: optim.betas="'[0.9,0.95]'".
ordered_json unquoted_list(const ordered_json& value) {
  if (!value.is_string() || !value.get_ref<const std::string&>().starts_with('[')) return value;
  const Result<ordered_json> list = parse_override_value(value.get_ref<const std::string&>());
  return list.ok() && list->is_array() ? *list : value;
}

}  // namespace

ConfigBuilder::ConfigBuilder(const KeyTable& keys) : keys_(keys), names_(keys) {
  values_.keys = &keys;
  values_.tree = keys.defaults();
}

Status ConfigBuilder::check_known(const std::string& written_key, const std::string& key,
                                  bool is_map, bool added) {
  if (keys_.find(key) != nullptr || values_.find(key) != nullptr) return Status();
  if (&keys_ == &train_keys() && is_added_key(key)) return Status();
  if (keys_.is_section(key)) {
    if (is_map) return Status();
    return invalid_argument("'" + key + "' is a section: set a key below it");
  }
  if (!added)
    return invalid_argument(complaints_.size() < kSuggestionsMax
                                ? unknown_key_message(written_key, keys_)
                                : "unknown key '" + written_key + "'");
  unknown_.push_back(key);
  return Status();
}

Status ConfigBuilder::set(const std::string& written_key, const ordered_json& value,
                          const std::string& origin, bool added) {
  if (std::count(written_key.begin(), written_key.end(), '.') >= kTreeDepthMax)
    return invalid_argument("'" + written_key.substr(0, 60) +
                            "...': the key is nested deeper than " + std::to_string(kTreeDepthMax));
  if (!is_utf8(written_key)) return invalid_argument("a key is not UTF-8 text");
  if (!value.is_object() && !is_utf8(value))
    return invalid_argument("'" + written_key + "': the value is not UTF-8 text");
  const std::string key = keys_.canonical(written_key);
  if (key != written_key) {
    const KeyInfo* row = keys_.find(key);
    const bool is_argument = row != nullptr && row->is_above(key);  // None is a value as any other
    if (value.is_null() && !is_argument)
      return Status();  // an older name that is switched off says nothing about the current one
    const std::string note = written_key + " means " + key;
    if (std::find(values_.notes.begin(), values_.notes.end(), note) == values_.notes.end())
      values_.notes.push_back(note);
  }
  if (value.is_object() && !value.empty()) {
    for (const auto& [name, child] : value.items()) {
      const Status status = set(written_key + "." + name, child, origin, added);
      if (!status.ok()) return status;
    }
    return Status();
  }
  const Status known = check_known(written_key, key, value.is_object() || value.is_null(), added);
  if (!known.ok()) return known;
  const ordered_json* present = values_.find(key);
  const bool keeps_section = present != nullptr && present->is_object() && !present->empty();
  if (keeps_section && (value.is_null() || value.is_object()))
    return Status();  // nothing to merge in
  if (keeps_section) return invalid_argument("'" + key + "' is a section: set a key below it");
  const Result<bool> replaces = names_.replaces(key, written_key, value);
  if (!replaces.ok()) {  // a command line may go before both
    contradictions_[key] = {written_key, origin, replaces.status().with_context(origin)};
    return Status();
  }
  if (!*replaces) return Status();
  if (origin == kCommandLine) contradictions_.erase(key);
  ordered_json* place = make_place(values_.tree, key);
  if (place == nullptr)
    return invalid_argument("'" + key + "': a part of this path is a value, not a section");
  const KeyInfo* row = keys_.find(key);
  // Null is no batch size: where a key has to have a value, it stands for the default.
  const bool means_default = value.is_null() && row != nullptr && !row->is_above(key) &&
                             row->has_default() && !matches_kind(value, row->kind);
  *place = means_default                                     ? *find_default(keys_, key)
           : row != nullptr && row->kind == KeyKind::kFloats ? unquoted_list(value)
                                                             : value;
  values_.origins[key] = origin;
  if (means_default) {
    values_.defaulted.insert(key);
  } else {
    values_.defaulted.erase(key);
  }
  return Status();
}

Status ConfigBuilder::add_file(const std::filesystem::path& file) {
  Result<std::vector<YamlEntry>> entries = read_yaml_file(file);
  if (!entries.ok()) return entries.status();
  names_.begin(KeyNames::Source::kFile);
  for (const YamlEntry& entry : *entries) {
    const std::string origin = file.string() + ":" + std::to_string(entry.line);
    if (is_of_hydra(entry.key)) continue;
    const Status status = set(entry.key, entry.value, origin, false);
    if (!status.ok()) complaints_.push_back({entry.key, origin, status.with_context(origin)});
  }
  names_.begin(KeyNames::Source::kCommandLine);
  return Status();
}

void ConfigBuilder::add_override(std::string_view text) {
  const std::size_t key_begin = text.find_first_not_of('+');
  if (key_begin != std::string_view::npos && text.substr(key_begin).starts_with("hydra/"))
    return;  // which files Hydra's own logs go to
  const Result<Override> change = parse_override(text);
  if (change.ok() && is_of_hydra(change->key)) return;
  if (change.ok() && is_group_choice(*change, keys_)) {
    group_choices_.push_back({change->key, change->key, change->value, kCommandLine,
                              Judgement::Verdict::kNoEffect, kGroupMeaning});
    return;
  }
  const Status status = change.ok()
                            ? apply(*change).with_context("override '" + std::string(text) + "'")
                            : change.status();
  if (!status.ok()) complaints_.push_back({std::string(text), kCommandLine, status});
}

Status ConfigBuilder::apply(const Override& change) {
  if (change.kind == OverrideKind::kDelete) return remove(change);
  const std::string key = keys_.canonical(change.key);
  if (change.kind == OverrideKind::kAdd && !change.value.is_structured()) {
    // What the user set; a default may have come with another release than the one that the script
    // was written for.
    const ordered_json* present = values_.is_set(key) ? values_.find(key) : nullptr;
    if (present != nullptr && !present->is_null()) {
      return invalid_argument("'" + key + "' already has the value " + show_value(*present) +
                              ": write " + change.key + "=... to change it, or ++" + change.key +
                              "=... for either");
    }
  }
  return set(change.key, change.value, kCommandLine, change.kind != OverrideKind::kSet);
}

Status ConfigBuilder::remove(const Override& change) {
  const std::string key = keys_.canonical(change.key);
  const ordered_json* present = values_.find(key);
  if (present == nullptr) {
    return invalid_argument(keys_.find(key) != nullptr ? "'" + key + "' has no value to delete"
                                                       : unknown_key_message(change.key, keys_));
  }
  if (change.has_value && *present != change.value) {
    return invalid_argument("'" + key + "' is " + show_value(*present) + ", not " +
                            show_value(change.value) + ": not deleted");
  }
  CHECK(erase_place(values_.tree, key));
  names_.forget(key);
  contradictions_.erase(key);
  const std::string below = key + ".";
  std::erase_if(values_.origins, [&](const auto& origin) {
    return origin.first == key || origin.first.starts_with(below);
  });
  values_.origins[key] = std::string(kCommandLine) + ", which deleted it";
  return Status();
}

std::vector<ConfigBuilder::Judged> ConfigBuilder::judge_keys() {
  const Result<ordered_json> defaults = resolve_references(keys_.defaults(), keys_);
  CHECK(defaults.ok());
  const ConfigValues by_default{.tree = *defaults};
  std::vector<Judged> judged;
  for (const auto& [key, origin] : values_.origins) {
    const KeyInfo* info = keys_.find(key);
    const ordered_json* value = values_.find(key);
    if (info == nullptr || value == nullptr) continue;  // added on purpose, or deleted
    const ordered_json* otherwise = by_default.find(key);
    const bool takes_any_text =
        !info->is_above(key) && info->support == KeySupport::kSupported && info->allowed.empty() &&
        (info->kind == KeyKind::kString || info->kind == KeyKind::kStringOrNull);
    if (takes_any_text && (value->is_number() || value->is_boolean())) {
      *make_place(values_.tree, key) =
          value->dump();  // `trainer.experiment_name=7`: a text that looks like something else
      judged.push_back({key, info, {}, false});
    } else {
      const ordered_json usual = otherwise == nullptr ? ordered_json() : *otherwise;
      judged.push_back({key, info, judge_key(*info, key, *value, usual), *value == usual});
    }
  }
  return judged;
}

Status ConfigBuilder::judge() {
  ErrorCode code = ErrorCode::kOk;
  std::string complaints;
  std::map<std::string, std::string> without_effect;  // reason -> keys
  for (const auto& [key, info, judgement, is_default] : judge_keys()) {
    if (judgement.verdict == Judgement::Verdict::kNoEffect &&
        !is_default) {  // of a default that is repeated there is nothing to say
      std::string& keys = without_effect[judgement.message];
      keys += (keys.empty() ? "" : ", ") + key;
    }
    if (judgement.verdict != Judgement::Verdict::kInvalid &&
        judgement.verdict != Judgement::Verdict::kRefused)
      continue;
    // An invalid value is the graver complaint: it is wrong everywhere.
    const bool refused = judgement.verdict == Judgement::Verdict::kRefused;
    if (code != ErrorCode::kInvalidArgument)
      code = refused ? ErrorCode::kUnimplemented : ErrorCode::kInvalidArgument;
    complaints += (complaints.empty() ? "" : "\n") + judgement.message + " (from " +
                  values_.origins[key] + ")";
  }
  if (code != ErrorCode::kOk) return Status(code, std::move(complaints));
  for (const auto& [reason, keys] : without_effect)
    values_.notes.push_back("without effect: " + keys + " (" + reason + ")");
  return Status();
}

void ConfigBuilder::note_choices(const std::string& estimator) {
  for (const std::string& key : unknown_) {
    if (values_.find(key) == nullptr) continue;
    values_.notes.push_back("without effect: " + key + " (" +
                            unknown_meaning(key, keys_, unknown_.size() <= kSuggestionsMax) + ")");
  }
  constexpr char kEngineName[] = "actor_rollout_ref.rollout.name";
  if (values_.is_set(kEngineName)) {
    const auto name = Config(values_).find_string(kEngineName);
    if (name.ok() && name->has_value() && **name != "starling") {
      values_.notes.push_back(std::string(kEngineName) + "=" + **name +
                              ": vllm, sglang and hf all mean Starling's own engine");
    }
  }
  if (!estimator.empty()) values_.notes.push_back(estimator);
  values_.notes.insert(values_.notes.end(), names_.notes().begin(), names_.notes().end());
  values_.notes.insert(values_.notes.end(), rate_notes_.begin(), rate_notes_.end());
  for (const KeyCheck& group : group_choices_)
    values_.notes.push_back("without effect: " + group.key + "=" + show_value(group.value) + " (" +
                            group.meaning + ")");
  std::vector<std::string> set_keys;
  for (const auto& [key, origin] : values_.origins) {
    if (values_.find(key) != nullptr) set_keys.push_back(key);  // not deleted
  }
  for (std::string& note : idle_key_notes(Config(values_), keys_, set_keys))
    values_.notes.push_back(std::move(note));
}

// verl's default is gae: who configures a critic counts on it. What to tell of that, or nothing
// where the user has chosen.
std::string ConfigBuilder::choose_estimator() {
  if (keys_.find(kEstimator) == nullptr || values_.is_set(kEstimator)) return "";
  if (!values_.is_set("critic"))
    return std::string(kEstimator) + " is not set: grpo (verl's default is gae)";
  values_.tree["algorithm"]["adv_estimator"] = "gae";
  return std::string(kEstimator) + " is not set, and critic.* is: gae, verl's default";
}

// Whether an adapter is trained may be a reference, and other keys may refer to the rate.
Status ConfigBuilder::resolve() {
  Result<ordered_json> resolved = resolve_references(values_.tree, keys_);
  if (!resolved.ok()) return resolved.status();
  for (AdapterRate& rate : adapter_rates(Config(values_).with_tree(*resolved), keys_)) {
    *make_place(values_.tree, rate.key) = rate.rate;
    if (!rate.note.empty()) rate_notes_.push_back(std::move(rate.note));
    resolved = resolve_references(values_.tree, keys_);
    if (!resolved.ok()) return resolved.status();
  }
  values_.tree = std::move(resolved).value();
  return {};
}

void ConfigBuilder::complain_of_contradictions() {
  for (const auto& [key, complaint] : contradictions_) complaints_.push_back(complaint);
}

Result<Config> ConfigBuilder::finish() {
  complain_of_contradictions();
  if (!complaints_.empty()) {
    std::string lines;
    for (const Complaint& complaint : complaints_)
      lines += (lines.empty() ? "" : "\n") + complaint.status.message();
    return Status(complaints_.front().status.code(), std::move(lines));
  }
  const std::string estimator = choose_estimator();
  Status status = resolve();
  if (status.ok()) status = judge();
  if (!status.ok()) return status;
  note_choices(estimator);
  return Config(std::move(values_));
}

ConfigCheck ConfigBuilder::check() {
  complain_of_contradictions();
  ConfigCheck check;
  for (const Complaint& complaint : complaints_) {
    check.keys.push_back({complaint.text, complaint.text, ordered_json(), complaint.origin,
                          Judgement::Verdict::kInvalid, complaint.status.message()});
  }
  if (std::string estimator = choose_estimator(); !estimator.empty())
    check.notes.push_back(std::move(estimator));
  if (const Status resolved = resolve(); !resolved.ok())
    check.keys.push_back(
        {"${...}", "${...}", ordered_json(), "", Judgement::Verdict::kInvalid, resolved.message()});
  check.notes.insert(check.notes.end(), names_.notes().begin(), names_.notes().end());
  check.notes.insert(check.notes.end(), rate_notes_.begin(), rate_notes_.end());
  for (Judged& judged : judge_keys()) {
    KeyCheck key{names_.name_of(judged.key), judged.key,
                 *values_.find(judged.key),  values_.origins[judged.key],
                 judged.judgement.verdict,   std::move(judged.judgement.message)};
    // What a script takes from the variables of its cluster is not there where its command line is
    // only looked at. A run refuses it.
    const bool left_open = key.verdict == Judgement::Verdict::kInvalid &&
                           is_empty_text(key.value) && key.origin == kCommandLine &&
                           !matches_kind(key.value, judged.info->kind);
    if (left_open) {
      check.notes.push_back(key.written +
                            "= has no value: where the script runs, the variable that it is taken "
                            "from has to be set, to " +
                            std::string(describe_kind(judged.info->kind)));
      key.verdict = Judgement::Verdict::kUsed;
    }
    if (key.verdict == Judgement::Verdict::kUsed) key.meaning = meaning_of(*judged.info, keys_);
    check.keys.push_back(std::move(key));
  }
  for (const std::string& key : unknown_) {
    const ordered_json* value = values_.find(key);
    if (value != nullptr)
      check.keys.push_back({key, key, *value, values_.origins[key], Judgement::Verdict::kNoEffect,
                            unknown_meaning(key, keys_, unknown_.size() <= kSuggestionsMax)});
  }
  check.keys.insert(check.keys.end(), group_choices_.begin(), group_choices_.end());
  return check;
}

}  // namespace rl
