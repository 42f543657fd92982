// Scores programs by running them in a sandbox: a SandboxFusion server
// (github.com/bytedance/SandboxFusion), whose /run_code takes a program and its input.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <vector>

#include "rl/reward/rule_scorer.h"
#include "rl/reward/scorer.h"

namespace rl {

/// The program in a response as verl finds it: what stands in its last ```python block, else in its
/// first block of any kind. The name of a language is left out. Nothing: there is no block.
std::optional<std::string> program_in(std::string_view response);

/// What a program is tried with. It comes from a ground truth {"inputs": [...], "outputs": [...]}
/// or {"assert_case": [...]}. With "fn_name" of a function to be called, each line of an input is
/// an argument as JSON. The lines of "assert_case" are run behind the program.
struct TestCases {
  struct Case {
    std::string input;
    std::optional<std::string> output;  // that must be printed; nothing: any
    std::string code_after;             // run behind the program
  };
  std::vector<Case> cases;
  std::string function;  // empty: the program reads and prints

  /// kInvalidArgument: another form, by what is wrong with it.
  static runtime::Result<TestCases> parse(const std::string& ground_truth);
};

struct SandboxOptions {
  std::string url;
  std::size_t concurrency = 64;                  // programs at once
  std::int64_t memory_limit_mb = 1024;           // of a program
  std::chrono::milliseconds timeout{10'000};     // of compiling a program, and of running it
  std::chrono::milliseconds on_the_way{10'000};  // that an answer may take besides
  int retries = 2;
  std::chrono::milliseconds pause{
      1000};  // before the first retry; each further one waits longer by as much
};

/// The share of the first ten cases that a program passes (verl's, with its `continuous`); 0
/// without a program, or where it does not compile. A response for which the server gives no
/// verdict has no score. Several calls of score() may be in flight at once, and share the
/// programs that may run at once.
class SandboxScorer : public Scorer {
 public:
  /// Has the server run a program that does nothing, so that one that isn't there is known before
  /// the first step. kUnavailable: no connection, with the address; kInvalidArgument: no http
  /// address, or an answer that is not a sandbox's.
  static runtime::Result<std::unique_ptr<SandboxScorer>> create(SandboxOptions options);

  runtime::Result<ScoredBatch> score(std::span<const ScoreRequest> requests) override;
  runtime::Status check_row(const ScoreRequest& row) const override {
    return TestCases::parse(row.ground_truth).status();
  }

 private:
  explicit SandboxScorer(SandboxOptions options)
      : options_(std::move(options)), slots_(static_cast<std::ptrdiff_t>(options_.concurrency)) {}

  SandboxOptions options_;
  std::counting_semaphore<> slots_;  // of programs
};

/// By data source: programs to the sandbox, the others to their rules.
class SandboxedRules : public Scorer {
 public:
  /// Without a sandbox only check_row() may be called.
  explicit SandboxedRules(std::unique_ptr<Scorer> sandbox) : sandbox_(std::move(sandbox)) {}

  bool prepares() const override { return sandbox_ && sandbox_->prepares(); }
  void prepare(std::span<const ScoreRequest> requests) override;
  runtime::Result<ScoredBatch> score(std::span<const ScoreRequest> requests) override;
  runtime::Status check_row(const ScoreRequest& row) const override;

 private:
  RuleScorer rules_;
  std::unique_ptr<Scorer> sandbox_;
};

}  // namespace rl
