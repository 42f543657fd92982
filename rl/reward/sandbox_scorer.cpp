#include "rl/reward/sandbox_scorer.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <iterator>
#include <thread>
#include <utility>

#include "rl/data/json_text.h"
#include "rl/hub/http.h"
#include "rl/reward/python_programs.h"
#include "runtime/core/json.h"
#include "runtime/core/thread.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {

constexpr std::size_t kCasesMax = 10;  // that verl's continuous score counts

enum class Verdict { kPassed, kFailed, kNotCompiled, kUnknown };

// The outcome of one case.
struct Outcome {
  Verdict verdict = Verdict::kUnknown;
  ScoreFailure failure = ScoreFailure::kError;  // of kUnknown
  std::string why;
};

std::string_view trim_newlines(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// A member's text, or empty.
std::string text_at(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool failed_itself(const json& part) {
  const std::string status = text_at(part, "status");
  const auto code = part.is_object() ? part.find("return_code") : part.end();
  return status == "Error" || status == "TimeLimitExceeded" ||
         (status == "Finished" && code != part.end() && *code != 0);
}

Outcome unknown(const SandboxOptions& options, const std::string& why,
                ScoreFailure failure = ScoreFailure::kError) {
  return {Verdict::kUnknown, failure, options.url + " " + why};
}

Outcome judge(const SandboxOptions& options, const std::string& body, const TestCases::Case& test) {
  const json answer = runtime::parse_json(body);
  const std::string status = text_at(answer, "status");
  if (status.empty())
    return unknown(options, "answered no verdict but " + excerpt(body, 100),
                   ScoreFailure::kInvalid);
  const json compiled = answer.value("compile_result", json()),
             ran = answer.value("run_result", json());
  if (status == "Success" && text_at(ran, "status") == "Finished") {
    const bool right =
        !test.output || trim_newlines(text_at(ran, "stdout")) == trim_newlines(*test.output);
    return {right ? Verdict::kPassed : Verdict::kFailed, ScoreFailure::kNone, {}};
  }
  if (status == "Failed" && failed_itself(compiled))
    return {Verdict::kNotCompiled, ScoreFailure::kNone, {}};
  if (status == "Failed" && failed_itself(ran)) return {Verdict::kFailed, ScoreFailure::kNone, {}};
  const std::string message = text_at(answer, "message");
  return unknown(options, "gave no verdict: " + status +
                              (message.empty() ? "" : ", " + excerpt(message, 200)));
}

std::string request_body(const SandboxOptions& options, const std::string& program,
                         const TestCases& cases, const TestCases::Case& test) {
  std::string code = program + "\n\n" + test.code_after;
  if (!cases.function.empty())
    code = kAnswerImports + code + "\n_NAME = " + json(cases.function).dump() + kCallFunction;
  const auto seconds =
      std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(options.timeout).count());
  const json body{{"code", code},
                  {"stdin", test.input},
                  {"language", "python"},
                  {"compile_timeout", seconds},
                  {"run_timeout", seconds},
                  {"memory_limit_MB", options.memory_limit_mb},
                  {"files", json::object()},
                  {"fetch_files", json::array()}};
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

Outcome run_case(const SandboxOptions& options, HttpClient& client, const std::string& body,
                 const TestCases::Case& test, ScoreCounts& counts) {
  HttpRequest request{.url = options.url};
  request.headers = {"Content-Type: application/json", "Accept: application/json"};
  request.post = body;
  request.total_max = 2 * options.timeout + options.on_the_way;
  request.silence_max = std::chrono::ceil<std::chrono::seconds>(request.total_max);
  Outcome outcome;
  for (int attempt = 0; attempt <= options.retries; ++attempt) {
    if (attempt > 0) {
      std::this_thread::sleep_for(options.pause * attempt);
      ++counts.retries;
    }
    const Result<HttpAnswer> answer = client.perform(request);
    if (!answer.ok()) {
      const bool late = answer.status().code() == runtime::ErrorCode::kDeadlineExceeded;
      ++(late ? counts.timeouts : counts.errors);
      outcome = {Verdict::kUnknown, late ? ScoreFailure::kTimeout : ScoreFailure::kError,
                 answer.status().message()};
      continue;
    }
    if (answer->status == 200) {
      outcome = judge(options, answer->body, test);
      if (outcome.verdict != Verdict::kUnknown) return outcome;
    } else {
      outcome = unknown(options, "answered " + std::to_string(answer->status) + ": " +
                                     excerpt(answer->body, 200));
    }
    ++counts.errors;
    if (answer->status != 200 && answer->status != 429 && answer->status < 500)
      break;  // it would say the same again
  }
  return outcome;
}

// What was found of a program before the first case that did not compile.
Score score_of(const std::vector<Outcome>& outcomes) {
  Score score;
  std::size_t passed = 0;
  for (const Outcome& outcome : outcomes) {
    if (outcome.verdict == Verdict::kNotCompiled) break;
    if (outcome.verdict == Verdict::kUnknown) {
      score.failure = outcome.failure;
      score.message = outcome.why;
      return score;
    }
    passed += outcome.verdict == Verdict::kPassed ? 1 : 0;
  }
  score.value =
      outcomes.empty() ? 0.0 : static_cast<double>(passed) / static_cast<double>(outcomes.size());
  return score;
}

bool is_code(const ScoreRequest& request) {
  const auto sources = code_data_sources();
  return std::find(sources.begin(), sources.end(), request.data_source) != sources.end();
}

}  // namespace

std::optional<std::string> program_in(std::string_view response) {
  constexpr std::string_view kFence = "```", kPython = "```python";
  const std::size_t python = response.rfind(kPython);
  if (python != std::string_view::npos) {
    const std::string_view rest = response.substr(python + kPython.size());
    return std::string(rest.substr(0, rest.find(kFence)));
  }
  const std::size_t first = response.find(kFence);
  if (first == std::string_view::npos) return std::nullopt;
  std::string_view code = response.substr(first + kFence.size());
  code = code.substr(0, code.find(kFence));
  const std::size_t line = code.find('\n');
  if (line == std::string_view::npos) return std::string(code);
  std::string_view language = code.substr(0, line);
  while (!language.empty() && std::isspace(static_cast<unsigned char>(language.front())) != 0)
    language.remove_prefix(1);
  while (!language.empty() && std::isspace(static_cast<unsigned char>(language.back())) != 0)
    language.remove_suffix(1);
  const bool is_name =
      !language.empty() && std::all_of(language.begin(), language.end(), [](char c) {
        return std::isalpha(static_cast<unsigned char>(c)) != 0;
      });
  return std::string(is_name ? code.substr(line + 1) : code);
}

Result<TestCases> TestCases::parse(const std::string& ground_truth) {
  const auto wrong = [](const std::string& what) {
    return runtime::invalid_argument(
        "ground truth: " + what +
        "; expected {\"inputs\": [...], \"outputs\": [...]} or {\"assert_case\": [...]}");
  };
  const json tree = runtime::parse_json(ground_truth);
  if (!tree.is_object()) return wrong("no JSON object");
  const json asserts = tree.value("assert_case", json()), inputs = tree.value("inputs", json()),
             outputs = tree.value("outputs", json());
  const bool has_asserts = asserts.is_array();
  if (!inputs.is_array() && !(inputs.is_null() && has_asserts))
    return wrong("it has no list of inputs");
  if (!outputs.is_array() && !(outputs.is_null() && has_asserts))
    return wrong("it has no list of outputs");
  const std::size_t count = has_asserts ? asserts.size() : inputs.size();
  if (count == 0) return wrong("it has no case");
  for (const auto& [name, list] : {std::pair("inputs", &inputs), std::pair("outputs", &outputs)}) {
    if (list->is_array() && list->size() != count)
      return wrong(std::to_string(list->size()) + " " + name + " for " + std::to_string(count) +
                   " cases");
  }
  TestCases cases;
  cases.function = text_at(tree, "fn_name");
  for (std::size_t i = 0; i < count; ++i) {
    Case test;
    if (inputs.is_array() && !inputs[i].is_null()) test.input = text_of(inputs[i]);
    if (outputs.is_array() && !outputs[i].is_null()) test.output = text_of(outputs[i]);
    if (has_asserts) test.code_after = text_of(asserts[i]);
    cases.cases.push_back(std::move(test));
  }
  return cases;
}

Result<std::unique_ptr<SandboxScorer>> SandboxScorer::create(SandboxOptions options) {
  const std::string key = "reward.sandbox_fusion.url";
  if (!options.url.starts_with("http://") && !options.url.starts_with("https://")) {
    return runtime::invalid_argument(
        key + ": expected an address that begins with http:// or https://, got '" + options.url +
        "'");
  }
  HttpClient client;
  ScoreCounts counts;
  const TestCases::Case nothing{.input = "", .output = "", .code_after = ""};
  const Outcome outcome =
      run_case(options, client, request_body(options, "pass", {}, nothing), nothing, counts);
  if (outcome.verdict != Verdict::kPassed && outcome.verdict != Verdict::kUnknown)
    return runtime::invalid_argument(key + ": " + options.url +
                                     " does not run Python: a program that does nothing failed");
  if (outcome.verdict == Verdict::kUnknown) {
    const std::string what =
        key + ": the sandbox gave no verdict on a program that does nothing: " + outcome.why;
    return outcome.failure == ScoreFailure::kInvalid
               ? runtime::invalid_argument(what + " (is the path right? it usually is /run_code)")
               : runtime::unavailable(what);
  }
  return std::unique_ptr<SandboxScorer>(new SandboxScorer(std::move(options)));
}

Result<ScoredBatch> SandboxScorer::score(std::span<const ScoreRequest> requests) {
  struct Job {
    std::size_t sample;
    std::size_t test;
  };
  std::vector<TestCases> cases(requests.size());
  std::vector<std::string> programs(requests.size());
  std::vector<std::vector<Outcome>> outcomes(requests.size());
  std::vector<Job> jobs;
  for (std::size_t sample = 0; sample < requests.size(); ++sample) {
    Result<TestCases> parsed = TestCases::parse(requests[sample].ground_truth);
    if (!parsed.ok()) return parsed.status().with_context(requests[sample].where);
    std::optional<std::string> program = program_in(requests[sample].response);
    if (!program) continue;  // no program passes nothing
    cases[sample] = std::move(*parsed);
    programs[sample] = std::move(*program);
    outcomes[sample].resize(std::min(cases[sample].cases.size(), kCasesMax));
    for (std::size_t test = 0; test < outcomes[sample].size(); ++test)
      jobs.push_back({sample, test});
  }
  std::atomic<std::size_t> next = 0;
  const std::size_t threads = std::min(options_.concurrency, jobs.size());
  std::vector<ScoreCounts> counts(threads);
  const auto work = [&](ScoreCounts& mine) {
    HttpClient client;
    for (std::size_t at = next++; at < jobs.size(); at = next++) {
      const auto [sample, test] = jobs[at];
      const TestCases::Case& one = cases[sample].cases[test];
      slots_.acquire();
      outcomes[sample][test] =
          run_case(options_, client, request_body(options_, programs[sample], cases[sample], one),
                   one, mine);
      slots_.release();
    }
  };
  std::atomic<std::size_t> seat = 0;
  const auto work_in_seat = [&] {
    if (const std::size_t mine = seat++; mine < threads) work(counts[mine]);
  };
  runtime::HelperThreads others(threads > 0 ? threads - 1 : 0, work_in_seat);
  work_in_seat();
  others.join();
  ScoredBatch batch;
  for (const ScoreCounts& part : counts) batch.counts.add(part);
  for (const std::vector<Outcome>& of_sample : outcomes)
    batch.scores.push_back(score_of(of_sample));
  return batch;
}

void SandboxedRules::prepare(std::span<const ScoreRequest> requests) {
  std::vector<ScoreRequest> programs;
  std::copy_if(requests.begin(), requests.end(), std::back_inserter(programs), is_code);
  sandbox_->prepare(programs);
}

Result<ScoredBatch> SandboxedRules::score(std::span<const ScoreRequest> requests) {
  std::vector<ScoreRequest> programs, others;
  for (const ScoreRequest& request : requests)
    (is_code(request) ? programs : others).push_back(request);
  Result<ScoredBatch> by_rule = rules_.score(others);
  if (!by_rule.ok()) return by_rule;
  Result<ScoredBatch> by_sandbox = sandbox_->score(programs);
  if (!by_sandbox.ok()) return by_sandbox;
  ScoredBatch batch;
  batch.counts.add(by_rule->counts);
  batch.counts.add(by_sandbox->counts);
  std::size_t program = 0, other = 0;
  for (const ScoreRequest& request : requests)
    batch.scores.push_back(
        std::move(is_code(request) ? by_sandbox->scores[program++] : by_rule->scores[other++]));
  return batch;
}

Status SandboxedRules::check_row(const ScoreRequest& row) const {
  return is_code(row) ? TestCases::parse(row.ground_truth).status() : rules_.check_row(row);
}

}  // namespace rl
