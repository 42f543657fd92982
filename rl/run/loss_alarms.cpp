#include "rl/run/loss_alarms.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "rl/config/number_text.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

// What a loss moves by without a reason, as a share of the first one (or of 1). A loss of nearly
// nothing may double and be nearly nothing.
constexpr double kNoise = 0.05;

// A loss that has collapsed varies by several times its size: it has recovered beyond this many
// times the limit.
constexpr double kRecovered = 5.0;

constexpr const char* kPreferenceLossKey = "preference.loss";  // of some stages alone

double mean_over(const std::deque<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> find_metric(const Metrics& metrics, const std::string& name) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? std::nullopt : std::optional(found->second);
}

ordered_json number_or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

std::optional<double> read_number(const ordered_json& of, const char* key) {
  const auto found = of.find(key);
  return found != of.end() && found->is_number() ? std::optional(found->get<double>())
                                                 : std::nullopt;
}

}  // namespace

runtime::Result<LossAlarmOptions> LossAlarmOptions::from_config(const Config& config) {
  ConfigReader read(config);
  LossAlarmOptions options;
  options.action = parse_alarm_action(read.get_string("trainer.alarms.action"));
  options.steps = read.get_int("trainer.alarms.steps");
  options.loss_rise_max = read.get_float("trainer.alarms.loss_rise_max");
  options.loss_fall_min = read.get_float("trainer.alarms.loss_fall_min");
  if (config.find(kPreferenceLossKey) != nullptr) {
    const std::string loss = read.get_string(kPreferenceLossKey);
    options.loss_may_vanish = loss == "ipo" || loss == "hinge" || loss == "sppo";
  }
  if (!read.status().ok()) return read.status();
  return options;
}

void LossAlarms::Series::push(double value, double reference, std::int64_t kept) {
  values.push_back(value);
  references.push_back(reference);
  while (static_cast<std::int64_t>(values.size()) > kept) {
    values.pop_front();
    references.pop_front();
  }
}

ordered_json LossAlarms::Series::to_json() const {
  return {{"values", values}, {"references", references}};
}

LossAlarms::Series LossAlarms::Series::from_json(const ordered_json& json) {
  Series series;
  if (!json.is_object() || !json.contains("values") || !json.contains("references")) return series;
  const ordered_json& values = json.at("values");
  const ordered_json& references = json.at("references");
  for (std::size_t i = 0; i < std::min(values.size(), references.size()); ++i) {
    if (values[i].is_number() && references[i].is_number())
      series.push(values[i].get<double>(), references[i].get<double>(),
                  static_cast<std::int64_t>(values.size()));
  }
  return series;
}

bool LossAlarms::has_risen(double value, double reference) const {
  if (std::isnan(value)) return true;
  const double noise = kNoise * std::max(1.0, first_loss_.value_or(0.0));
  return reference > 0 && value > options_.loss_rise_max * reference && value - reference > noise;
}

// Told when it begins to be bad.
void LossAlarms::judge(const std::string& alarm, bool is_bad, bool is_over, const std::string& what,
                       Metrics& metrics, std::vector<std::string>& messages) {
  if (is_over) {
    bad_.erase(alarm);
  } else if (is_bad && bad_.insert(alarm).second) {
    messages.push_back(what);
    metrics["alarms/" + alarm] = 1.0;
  }
}

void LossAlarms::watch_training(const std::string& metric, double loss, Metrics& metrics,
                                std::vector<std::string>& messages) {
  if (!first_loss_) {
    first_loss_ = loss;
    return;
  }
  losses_.push(loss, *first_loss_, options_.steps);
  const bool is_full = static_cast<std::int64_t>(losses_.values.size()) == options_.steps;
  const double mean = mean_over(losses_.values);
  const std::string measured = metric + " is " + number_text(mean, 4) + " over the last " +
                               std::to_string(options_.steps) + " step(s), ";
  // A mean about its limit is one alarm: it is over once the mean is well on the other side.
  const double collapsed = options_.loss_fall_min * *first_loss_;
  const double recovered =
      std::min(kRecovered * options_.loss_fall_min, (1.0 + options_.loss_fall_min) / 2.0) *
      *first_loss_;
  judge("train_loss_rise", is_full && has_risen(mean, *first_loss_),
        is_full && mean <= (1.0 + options_.loss_rise_max) / 2.0 * *first_loss_,
        "the training loss has risen, and the weights may be ruined: " + measured + "more than " +
            number_text(options_.loss_rise_max, 4) + " times the " + number_text(*first_loss_, 4) +
            " of the first step (trainer.alarms.loss_rise_max); lower " + options_.rate,
        metrics, messages);
  judge("train_loss_collapse",
        !options_.loss_may_vanish && is_full && *first_loss_ > 0 && mean < collapsed,
        is_full && mean > recovered,
        "the training loss has collapsed: " + measured + "less than " +
            number_text(options_.loss_fall_min, 4) + " times the " + number_text(*first_loss_, 4) +
            " of the first step (trainer.alarms.loss_fall_min). The rows are learned by heart, or "
            "the weights answer nothing else any more. See what held-out rows say (data.val_files, "
            "trainer.test_freq), and lower " +
            options_.rate + " or train fewer steps",
        metrics, messages);
}

void LossAlarms::watch_held_out(double loss, Metrics& metrics, std::vector<std::string>& messages) {
  const std::optional<double> reference = lowest_held_out_ ? lowest_held_out_ : first_loss_;
  const std::string against =
      lowest_held_out_ ? " that it was at its lowest"
                       : " of the first training step (trainer.val_before_train=true measures the "
                         "held-out rows there, too)";
  const bool is_bad = reference && has_risen(loss, *reference);
  judge("val_loss_rise", is_bad, !is_bad,
        "the held-out loss has risen, and the weights may be ruined: val/loss is " +
            number_text(loss, 4) + ", more than " + number_text(options_.loss_rise_max, 4) +
            " times the " + number_text(reference.value_or(0.0), 4) + against +
            " (trainer.alarms.loss_rise_max); lower " + options_.rate +
            ", train fewer steps, or keep the best checkpoint (trainer.save_best=val/loss)",
        metrics, messages);
  if (!std::isnan(loss)) lowest_held_out_ = std::min(loss, lowest_held_out_.value_or(loss));
}

// A preference loss sees differences alone: it may fall while all responses become unlikely.
void LossAlarms::watch_chosen(const std::string& phase, std::int64_t steps, Metrics& metrics,
                              std::vector<std::string>& messages) {
  const auto logprobs = find_metric(metrics, phase + "/logps/chosen");
  if (!logprobs) return;
  double now = -*logprobs, before = 0.0;
  if (const auto reference = find_metric(metrics, phase + "/ref_logps/chosen")) {
    before = -*reference;
  } else {  // of one token, and of other rows
    const auto reward = find_metric(metrics, phase + "/rewards/chosen");
    if (!reward) return;
    now = -*reward;
    if (!first_chosen_) first_chosen_ = now;
    before = *first_chosen_;
  }
  Series& series = chosen_[phase];
  series.push(now, before, steps);
  const double now_mean = mean_over(series.values), before_mean = mean_over(series.references);
  const bool is_bad =
      static_cast<std::int64_t>(series.values.size()) == steps && has_risen(now_mean, before_mean);
  judge(phase == "val" ? "val_chosen_fall" : "chosen_fall", is_bad, !is_bad,
        "the chosen responses have become unlikely along with the rejected ones: their negative "
        "log-probability (" +
            phase + "/logps/chosen) is " + number_text(now_mean, 4) + ", more than " +
            number_text(options_.loss_rise_max, 4) + " times the " + number_text(before_mean, 4) +
            " that it was before training (trainer.alarms.loss_rise_max): the model is being "
            "ruined; lower " +
            options_.rate + ", raise preference.beta, or add preference.sft_weight",
        metrics, messages);
}

std::vector<std::string> LossAlarms::observe(Metrics& metrics, const std::string& phase) {
  std::vector<std::string> messages;
  if (options_.action == AlarmAction::kOff) return messages;
  const std::string metric = phase + "/loss";
  const std::optional<double> loss = find_metric(metrics, metric);
  if (loss && std::isfinite(*loss)) watch_training(metric, *loss, metrics, messages);
  if (const auto held_out = find_metric(metrics, "val/loss"))
    watch_held_out(*held_out, metrics, messages);
  watch_chosen("train", options_.steps, metrics, messages);
  watch_chosen("val", 1, metrics, messages);
  return messages;
}

ordered_json LossAlarms::to_json() const {
  ordered_json chosen = ordered_json::object();
  for (const auto& [phase, series] : chosen_) chosen[phase] = series.to_json();
  return {{"first_loss", number_or_null(first_loss_)},
          {"lowest_held_out", number_or_null(lowest_held_out_)},
          {"first_chosen", number_or_null(first_chosen_)},
          {"losses", losses_.to_json()},
          {"chosen", std::move(chosen)}};
}

void LossAlarms::restore(const ordered_json& state) {
  *this = LossAlarms(std::move(options_));
  const auto found = state.find(kStateKey);
  if (found == state.end() || !found->is_object()) return;
  first_loss_ = read_number(*found, "first_loss");
  lowest_held_out_ = read_number(*found, "lowest_held_out");
  first_chosen_ = read_number(*found, "first_chosen");
  if (const auto losses = found->find("losses"); losses != found->end())
    losses_ = Series::from_json(*losses);
  if (const auto chosen = found->find("chosen"); chosen != found->end() && chosen->is_object()) {
    for (const auto& [phase, series] : chosen->items()) chosen_[phase] = Series::from_json(series);
  }
}

}  // namespace rl
