// The cost of scoring by a user's Python file, also when 1 % of the calls hang and 1 %
// crash.
//
//   bench_reward [--samples 256] [--workers 8] [--steps 5] [--call-ms 2] [--step-seconds 20]
//   [--timeout-seconds 2] [--pause-seconds 2] [--generation-seconds 10] [--reference-seconds 0]
//   [--json]
// The costs are for a step in which nothing else runs during scoring. With a reference or a teacher
// the trainer waits for both at once, and --reference-seconds is how long that one takes. Only the
// time that scoring takes beyond it counts.
//
// "transient": a call hangs or crashes at random, and its second try is fine. "permanent": a
// response always hangs or crashes at any try, so that the whole time limit passes. Between two
// scorings there is a pause, in which processes are replaced, as generation and training are one.
// Each kind is measured twice: scored when all responses are there, and while they are generated.
// Then responses come one after the other over --generation-seconds, at even distances, in another
// order in every step. The time from the last response on counts. The costs are shares of a step
// of --step-seconds, against the same calls without faults.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/options.h"
#include "bench/support/timing.h"
#include "rl/reward/process_scorer.h"

namespace {

struct Figures {
  double seconds = 0;  // of scoring, mean over the steps
  rl::ScoreCounts counts;
  std::size_t failed = 0;
};

// Hands the requests to the scorer at the rate of generation.
void generate(rl::ProcessScorer& scorer, std::vector<rl::ScoreRequest> requests, double seconds,
              std::mt19937& order) {
  std::shuffle(requests.begin(), requests.end(), order);
  const auto begin = bench::Clock::now();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const double due = seconds * static_cast<double>(i + 1) / static_cast<double>(requests.size());
    std::this_thread::sleep_until(begin + std::chrono::duration_cast<bench::Clock::duration>(
                                              std::chrono::duration<double>(due)));
    scorer.prepare(std::span(&requests[i], 1));
  }
}

Figures measure(rl::ProcessScorer& scorer, const std::string& kind, std::size_t samples,
                std::size_t steps, double pause_seconds, double generation_seconds,
                double reference_seconds) {
  std::vector<rl::ScoreRequest> requests;
  for (std::size_t i = 0; i < samples; ++i)
    requests.push_back({.data_source = kind,
                        .response = std::to_string(i),
                        .ground_truth = "",
                        .extra_info = "",
                        .where = "row"});
  Figures figures;
  std::vector<double> seconds;
  std::mt19937 order(1);
  for (std::size_t step = 0; step < steps; ++step) {
    if (generation_seconds > 0) generate(scorer, requests, generation_seconds, order);
    const auto begin = bench::Clock::now();
    const auto batch = scorer.score(requests);
    if (!batch.ok()) bench::fail(batch.status().to_string());
    seconds.push_back(std::max(bench::seconds_since(begin) - reference_seconds, 0.0));
    figures.counts.add(batch->counts);
    for (const rl::Score& score : batch->scores) figures.failed += !score.ok();
    std::this_thread::sleep_for(std::chrono::duration<double>(pause_seconds));
  }
  figures.seconds =
      std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t samples = 256, workers = 8, steps = 5;
  double call_ms = 2, step_seconds = 20, timeout_seconds = 2, pause_seconds = 2,
         generation_seconds = 10, reference_seconds = 0;
  bool json = false;
  bench::read_options(argc, argv,
                      {{"--samples", &samples},
                       {"--workers", &workers},
                       {"--steps", &steps},
                       {"--call-ms", &call_ms},
                       {"--step-seconds", &step_seconds},
                       {"--timeout-seconds", &timeout_seconds},
                       {"--pause-seconds", &pause_seconds},
                       {"--generation-seconds", &generation_seconds},
                       {"--reference-seconds", &reference_seconds},
                       {"--json", &json}});
  const std::string file = STARLING_SOURCE_DIR "/bench/micro/faulty_reward.py";
  rl::ScoringLimits limits;
  limits.workers = workers;
  limits.timeout = std::chrono::milliseconds(static_cast<long>(timeout_seconds * 1000));
  auto scorer = rl::ProcessScorer::python(file, "compute_score", {{"call_ms", call_ms}}, limits);
  if (!scorer.ok()) bench::fail(scorer.status().to_string());
  measure(**scorer, "none", samples, 1, 0, 0, 0);  // all processes have started
  nlohmann::ordered_json report{{"machine", bench::machine()},
                                {"commit", bench::commit()},
                                {"samples", samples},
                                {"workers", workers},
                                {"call_ms", call_ms},
                                {"step_seconds", step_seconds},
                                {"timeout_seconds", timeout_seconds},
                                {"generation_seconds", generation_seconds},
                                {"beside_seconds", reference_seconds}};
  const double plain =
      measure(**scorer, "none", samples, steps, pause_seconds, 0, reference_seconds).seconds;
  // The figures keep the names that recorded runs have.
  for (const double generating : {0.0, generation_seconds}) {
    for (const std::string kind : {"none", "transient", "permanent"}) {
      const std::string name = generating > 0 ? kind + " while drawn" : kind;
      const Figures figures =
          measure(**scorer, kind, samples, steps, pause_seconds, generating, reference_seconds);
      const double cost = (figures.seconds - plain) / step_seconds;
      if (!json) {
        std::printf(
            "%-22s %7.3f s a step, %+6.2f %% of a step of %g s; %ld timeouts, %ld crashes, %ld "
            "overtaken, %ld retries, %zu without a score\n",
            name.c_str(), figures.seconds, cost * 100, step_seconds,
            static_cast<long>(figures.counts.timeouts), static_cast<long>(figures.counts.crashes),
            static_cast<long>(figures.counts.overtaken), static_cast<long>(figures.counts.retries),
            figures.failed);
      }
      report[name] = {{"seconds", figures.seconds},
                      {"cost_of_step", cost},
                      {"timeouts", figures.counts.timeouts},
                      {"crashes", figures.counts.crashes},
                      {"overtaken", figures.counts.overtaken},
                      {"retries", figures.counts.retries},
                      {"failed", figures.failed}};
    }
  }
  if (json) std::printf("%s\n", report.dump(2).c_str());
  return 0;
}
