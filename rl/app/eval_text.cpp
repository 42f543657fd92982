#include "rl/app/eval_text.h"

#include <cstdio>

namespace rl {
namespace {

using nlohmann::ordered_json;

std::string estimate_line(const std::string& name, const Estimate& estimate) {
  char text[96];
  std::snprintf(text, sizeof text, "  %-10s %.3f  (%.3f to %.3f)\n", name.c_str(), estimate.value,
                estimate.low, estimate.high);
  return text;
}

ordered_json json_of(const Estimate& estimate) {
  return {{"value", estimate.value}, {"low", estimate.low}, {"high", estimate.high}};
}

}  // namespace

std::string summary_text(const std::vector<EvaluationSummary>& summaries) {
  std::string out;
  for (const EvaluationSummary& summary : summaries) {
    out += (out.empty() ? "" : "\n") +
           (summary.data_source.empty() ? std::string("(no data source)") : summary.data_source) +
           ": " + std::to_string(summary.prompts) + " prompts, " + std::to_string(summary.answers) +
           " answers, " + std::to_string(summary.errors) + " errors\n";
    out += estimate_line("right", summary.accuracy);
    for (const auto& [k, value] : summary.pass)
      out += estimate_line("pass@" + std::to_string(k), value);
    for (const auto& [k, value] : summary.majority)
      out += estimate_line("maj@" + std::to_string(k), value);
    char text[128];
    std::snprintf(text, sizeof text, "  %-10s %.3f\n  %-10s %.1f, %.1f %% cut off\n", "score",
                  summary.score, "tokens", summary.tokens, 100 * summary.cut);
    out += text;
  }
  return out;
}

ordered_json summary_json(const std::vector<EvaluationSummary>& summaries) {
  auto all = ordered_json::array();
  for (const EvaluationSummary& summary : summaries) {
    ordered_json one{{"data_source", summary.data_source},
                     {"prompts", summary.prompts},
                     {"answers", summary.answers},
                     {"errors", summary.errors}};
    one["accuracy"] = json_of(summary.accuracy);
    for (const auto& [k, value] : summary.pass) one["pass@" + std::to_string(k)] = json_of(value);
    for (const auto& [k, value] : summary.majority)
      one["maj@" + std::to_string(k)] = json_of(value);
    one["score"] = summary.score;
    one["tokens"] = summary.tokens;
    one["cut"] = summary.cut;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace rl
