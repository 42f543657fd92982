#include "rl/report/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "rl/report/chart.h"
#include "rl/report/page.h"
#include "rl/report/page_texts.h"
#include "rl/template/html.h"

namespace rl {
namespace {

using runtime::Result;

// Where a metric belongs; the order is that of the page.
struct Section {
  const char* title;
  std::vector<const char*> prefixes;
};
const std::vector<Section>& sections() {
  static const std::vector<Section> kSections = {
      {"Reward", {"critic/score", "critic/rewards", "reward/", "val"}},
      {"Policy", {"actor/", "algo/"}},
      {"Training", {"train/"}},
      {"Critic and advantages", {"critic/"}},
      {"Lengths", {"response_length", "prompt_length"}},
      {"Speed", {"perf/", "timing_per_token_ms/"}},
      {"Warm start", {"sft/"}},
      {"Everything else", {""}}};
  return kSections;
}

bool begins(const std::string& name, const std::vector<const char*>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const char* prefix) { return name.starts_with(prefix); });
}

std::map<std::string, Series> all_series(const RunLog& run, bool of_phases) {
  std::map<std::string, Series> all;
  for (const StepRecord& record : run.records) {
    if (record.phase.empty() == of_phases) continue;
    for (const auto& [name, value] : record.metrics) {
      Series& series = all[name];
      series.name = name;
      series.steps.push_back(static_cast<double>(record.step));
      series.values.push_back(value);
    }
  }
  return all;
}

// name/mean, /max and /min are one chart; what is left is a chart each.
std::string charts(std::map<std::string, Series> series) {
  std::string html;
  while (!series.empty()) {
    const std::string name = series.begin()->first;
    const std::size_t slash = name.rfind('/');
    const std::string base = slash == name.npos ? name : name.substr(0, slash);
    std::vector<Series> together;
    std::string title = name;
    if (series.contains(base + "/mean") && series.contains(base + "/max") &&
        series.contains(base + "/min")) {
      title = base;
      for (const char* part : {"mean", "max", "min"}) {
        together.push_back(series.at(base + "/" + part));
        together.back().name = part;
        series.erase(base + "/" + part);
      }
    } else {
      together.push_back(series.begin()->second);
      series.erase(series.begin());
    }
    const std::string chart = line_chart(together);
    html += card(title, chart.empty() ? "<p class='dim'>no finite value</p>" : chart);
  }
  return html;
}

std::string timing_charts(const std::map<std::string, Series>& all) {
  std::vector<Series> roles;
  std::vector<double> total;
  for (const auto& [name, series] : all) {
    if (!name.starts_with("timing_s/") || name == "timing_s/step") continue;
    roles.push_back(series);
    roles.back().name = name.substr(9);
  }
  if (roles.empty()) return "";
  double sum = 0;
  for (const Series& role : roles) {
    double seconds = 0;
    for (const double value : role.values) seconds += std::isfinite(value) ? value : 0;
    total.push_back(seconds);
    sum += seconds;
  }
  std::string shares = "<table>";
  for (std::size_t i = 0; i < roles.size(); ++i) {
    shares += "<tr><td><i style='display:inline-block;width:10px;height:10px;background:" +
              series_color(i) + "'></i> " + html_text(roles[i].name) + "</td><td>" +
              axis_number(total[i]) + " s</td><td>" +
              axis_number(sum > 0 ? std::round(1000 * total[i] / sum) / 10 : 0) + " %</td></tr>";
  }
  return "<h2>Time</h2><div class='grid-of'>" +
         card("seconds of each step, by role", stacked_chart(roles, "s")) +
         card("of the whole run", shares + "</table>") + "</div>";
}

// From white to a colour: red for below 0, green for above, by the share of the largest.
std::string tint(double value, double largest) {
  if (!std::isfinite(value) || largest <= 0) return "transparent";
  const double share = std::min(1.0, std::abs(value) / largest);
  char text[48];
  std::snprintf(text, sizeof text, "rgba(%s,%.2f)", value < 0 ? "220,38,38" : "5,150,105",
                0.75 * share);
  return text;
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

std::string tokens_html(const RolloutSample& sample) {
  if (sample.tokens.empty()) return html_text(sample.output);
  const double advantage_largest = largest_of(sample.advantages);
  std::string html;
  for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
    std::string style, title;
    if (!sample.mask.empty() && sample.mask[i] == 0) {
      html += "<span class='dim' title='not the policy&#39;s: a tool or a user wrote it'>" +
              html_text(sample.tokens[i]) + "</span>";
      continue;
    }
    if (!sample.logprobs.empty()) {
      style += "--p:" + tint(sample.logprobs[i], 6.0) + ";";  // e^-6: one in four hundred
      title += "log-probability " + axis_number(sample.logprobs[i]);
    }
    if (!sample.advantages.empty()) {
      style += "--a:" + tint(sample.advantages[i], advantage_largest) + ";";
      title +=
          std::string(title.empty() ? "" : ", ") + "advantage " + axis_number(sample.advantages[i]);
    }
    html += "<span class='tok' style='" + style + "' title='" + title + "'>" +
            html_text(sample.tokens[i]) + "</span>";
  }
  return html;
}

std::string sample_html(const RolloutSample& sample) {
  return "<div class='card sample'><div class='dim'>score <b>" + axis_number(sample.score) +
         "</b>" +
         (sample.expected.empty()
              ? ""
              : " &middot; expected <b>" + html_text(sample.expected) + "</b>") +
         "</div><pre class='dim'>" + html_text(sample.input) + "</pre><pre class='out'>" +
         tokens_html(sample) + "</pre></div>";
}

// The steps whose samples are shown.
Result<std::vector<const StepSamples*>> chosen(const RunLog& run,
                                               const std::vector<std::int64_t>& wanted) {
  std::vector<const StepSamples*> steps;
  if (run.rollouts.empty() && wanted.empty()) return steps;
  if (wanted.empty()) {
    for (const std::size_t place :
         std::set<std::size_t>{0, run.rollouts.size() / 2, run.rollouts.size() - 1})
      steps.push_back(&run.rollouts[place]);
    return steps;
  }
  for (const std::int64_t step : wanted) {
    const auto found =
        std::find_if(run.rollouts.begin(), run.rollouts.end(),
                     [&](const StepSamples& samples) { return samples.step == step; });
    if (found == run.rollouts.end()) {
      const std::string kept = run.rollouts.empty()
                                   ? "none was kept: train with trainer.rollout_data_dir"
                                   : "there are " + std::to_string(run.rollouts.front().step) +
                                         " to " + std::to_string(run.rollouts.back().step);
      return runtime::not_found("no responses of step " + std::to_string(step) + " (" + kept + ")");
    }
    steps.push_back(&*found);
  }
  return steps;
}

std::string facts(const RunLog& run, const std::map<std::string, Series>& all) {
  std::string html = "<div class='facts'>";
  if (!run.records.empty())
    html += fact("steps", std::to_string(run.records.back().step) + " of " +
                              std::to_string(run.records.back().total));
  for (const auto& [name, title] : std::vector<std::pair<std::string, std::string>>{
           {"critic/score/mean", "mean score, first and last"}}) {
    const auto found = all.find(name);
    if (found != all.end())
      html += fact(title, axis_number(found->second.values.front()) + " → " +
                              axis_number(found->second.values.back()));
  }
  for (const auto& [name, series] : all) {
    if (name.starts_with("val-core/"))
      html += fact(name.substr(9),
                   axis_number(series.values.front()) + " → " + axis_number(series.values.back()));
  }
  const auto step = all.find("timing_s/step");
  if (step != all.end()) {
    double sum = 0;
    for (const double value : step->second.values) sum += std::isfinite(value) ? value : 0;
    html +=
        fact("seconds a step", axis_number(sum / static_cast<double>(step->second.values.size())));
  }
  return html + "</div>";
}

}  // namespace

Result<std::string> report_html(const RunLog& run, const ReportOptions& options) {
  const Result<std::vector<const StepSamples*>> shown = chosen(run, options.sample_steps);
  if (!shown.ok()) return shown.status();
  std::map<std::string, Series> all = all_series(run, false);
  std::string html = "<h1>" + html_text(run.name) +
                     "</h1><div class='dim'>a training run of Starling</div>" + facts(run, all);
  const std::string time = timing_charts(all);
  std::map<std::string, Series> left = all;
  left.merge(all_series(run, true));
  std::erase_if(left, [](const auto& item) {
    return item.first.starts_with("timing_s/") || item.first.starts_with("training/");
  });
  for (const Section& section : sections()) {
    std::map<std::string, Series> of_section;
    for (auto it = left.begin(); it != left.end();) {
      if (begins(it->first, section.prefixes))
        of_section.insert(left.extract(it++));
      else
        ++it;
    }
    std::string inside = charts(std::move(of_section));
    if (section.title == std::string_view("Reward") && !run.rollouts.empty()) {
      std::vector<Distribution> spread;
      for (const StepSamples& samples : run.rollouts) {
        spread.push_back({samples.step, {}});
        for (const RolloutSample& sample : samples.samples)
          spread.back().values.push_back(sample.score);
      }
      inside = card("how the scores are spread", distribution_chart(spread)) + inside;
    }
    if (!inside.empty())
      html +=
          "<h2>" + std::string(section.title) + "</h2><div class='grid-of'>" + inside + "</div>";
    if (section.title == std::string_view("Reward")) html += time;
  }
  if (!shown->empty())
    html +=
        "<h2>Responses</h2><p>Tokens coloured by <button "
        "data-by='logprob'>log-probability</button><button "
        "data-by='advantage'>advantage</button></p>";
  for (const StepSamples* step : *shown) {
    html += "<h3>step " + std::to_string(step->step) + "</h3>";
    const std::size_t count =
        std::min(step->samples.size(), static_cast<std::size_t>(options.samples_per_step));
    for (std::size_t i = 0; i < count; ++i) html += sample_html(step->samples[i]);
  }
  if (!run.config.empty())
    html += "<details><summary>Configuration</summary><pre>" + html_text(run.config) +
            "</pre></details>";
  return page(
      {.title = run.name, .body = html, .script = kReportScript, .body_class = "by-logprob"});
}

}  // namespace rl
