#include "rl/report/evaluation_page.h"

#include <algorithm>
#include <cstdio>

#include "rl/report/chart.h"
#include "rl/report/page.h"
#include "rl/report/page_texts.h"
#include "rl/template/html.h"

namespace rl {
namespace {

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string cell(const std::string& text) { return "<td class='n'>" + text + "</td>"; }

std::string cell(const Estimate& estimate) {
  return "<td class='n'><b>" + percent(estimate.value) + "</b> <span class='dim'>" +
         percent(estimate.low) + " to " + percent(estimate.high) + "</span></td>";
}

std::string summary_table(const std::vector<EvaluationSummary>& summaries) {
  if (summaries.empty()) return "";
  std::string html =
      "<table><tr><th>data source</th><th class='n'>prompts</th><th class='n'>right</th>";
  const EvaluationSummary& first = summaries.front();
  for (const auto& [k, value] : first.pass)
    html += "<th class='n'>pass@" + std::to_string(k) + "</th>";
  for (const auto& [k, value] : first.majority)
    html += "<th class='n'>maj@" + std::to_string(k) + "</th>";
  html +=
      "<th class='n'>score</th><th class='n'>tokens</th><th class='n'>cut off</th><th "
      "class='n'>errors</th></tr>";
  for (const EvaluationSummary& summary : summaries) {
    html += "<tr><td>" + html_text(summary.data_source) + "</td>" +
            cell(std::to_string(summary.prompts)) + cell(summary.accuracy);
    for (const auto& [k, value] : summary.pass) html += cell(value);
    for (const auto& [k, value] : summary.majority) html += cell(value);
    html += cell(axis_number(summary.score)) + cell(axis_number(summary.tokens)) +
            cell(percent(summary.cut)) + cell(std::to_string(summary.errors)) + "</tr>";
  }
  return html + "</table>";
}

std::string answer_html(const EvaluatedAnswer& answer) {
  if (!answer.error.empty())
    return "<div class='wrong'>error: " + html_text(answer.error) + "</div>" +
           (answer.text.empty() ? "" : "<pre class='out'>" + html_text(answer.text) + "</pre>");
  return "<div class='" + std::string(answer.right ? "right'>right" : "wrong'>wrong") +
         " <span class='dim'>&middot; score " + axis_number(answer.score) + " &middot; answer " +
         html_text(answer.answer) + " &middot; " + std::to_string(answer.tokens) + " tokens" +
         (answer.cut ? ", cut off" : "") + "</span></div><pre class='out'>" +
         html_text(answer.text) + "</pre>";
}

std::string prompt_html(const EvaluatedPrompt& prompt) {
  const auto right = std::count_if(prompt.answers.begin(), prompt.answers.end(),
                                   [](const EvaluatedAnswer& answer) { return answer.right; });
  const auto all = static_cast<std::ptrdiff_t>(prompt.answers.size());
  std::string html =
      "<div class='card sample' data-right='" +
      std::string(right == all ? "all"
                  : right == 0 ? "none"
                               : "some") +
      "'><div class='dim'>" + html_text(prompt.where) + " &middot; " + std::to_string(right) +
      " of " + std::to_string(all) + " right" +
      (prompt.expected.empty() ? ""
                               : " &middot; expected <b>" + html_text(prompt.expected) + "</b>") +
      "</div><pre class='dim'>" + html_text(prompt.prompt) + "</pre>";
  for (std::size_t i = 0; i < prompt.answers.size(); ++i) {
    if (i == 1) html += "<details><summary>" + std::to_string(all - 1) + " more</summary>";
    html += answer_html(prompt.answers[i]);
  }
  if (prompt.answers.size() > 1) html += "</details>";
  return html + "</div>";
}

}  // namespace

std::string evaluation_html(const std::vector<EvaluationSummary>& summaries,
                            const std::vector<EvaluatedPrompt>& prompts,
                            const EvaluationPageOptions& options) {
  std::string html = "<h1>" + html_text(options.title) +
                     "</h1><div class='dim'>an evaluation by Starling</div><div class='facts'>";
  for (const auto& [name, value] : options.facts) html += fact(name, value);
  html += "</div><h2>Results</h2>" +
          card("with 95 % confidence intervals over the prompts", summary_table(summaries));
  const std::size_t shown = std::min(
      prompts.size(), static_cast<std::size_t>(std::max<std::int64_t>(0, options.prompts_max)));
  html +=
      "<h2>Answers</h2><p>Show <button data-show='all'>all</button><button data-show='wrong'>with "
      "a wrong answer</button><button data-show='mixed'>with right and wrong answers</button>";
  if (shown < prompts.size())
    html += " <span class='dim'>the first " + std::to_string(shown) + " of " +
            std::to_string(prompts.size()) + " prompts</span>";
  html += "</p>";
  for (std::size_t i = 0; i < shown; ++i) html += prompt_html(prompts[i]);
  return page(
      {.title = options.title, .body = html, .script = kEvaluationScript, .body_class = ""});
}

}  // namespace rl
