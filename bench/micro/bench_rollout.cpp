// How fast the rollout engine reads prompts and generates, against what the machine's memory and FMA units allow.
//
//   bench_rollout --model PATH --batch 1,16,64 --prompt-len 48 --new-tokens 32 --json
//
// Random token ids, sampled at temperature 1, end-of-sequence ignored. Decoding is timed from the first step after all prompts are
// read; medians over --repeat runs, with the spread (max - min) / median. Bandwidth and peak are measured in the same run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "rl/kernel/kernel.h"
#include "rl/model/transformer.h"
#include "rl/rollout/engine.h"

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Options {
  std::string model;
  std::vector<std::int64_t> batches{1, 16, 64};
  std::int64_t prompt_tokens = 48;
  std::int64_t new_tokens = 32;
  int threads = 0;
  int repeat = 3;
  bool json = false;
};

struct Spread {
  double median = 0;
  double relative = 0;  // (max - min) / median
};

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double median = values[values.size() / 2];
  return {median, (values.back() - values.front()) / median};
}

// Bytes per second that all threads together read from memory: the best of several passes over more than any cache holds.
double measure_bandwidth(rl::kernel::ThreadPool& pool) {
  std::vector<std::uint64_t> data(std::size_t{64} << 20, 1);  // 512 MiB
  double best = 0;
  std::atomic<std::uint64_t> sink{0};
  for (int pass = 0; pass < 6; ++pass) {
    const Clock::time_point start = Clock::now();
    pool.parallel_for(static_cast<std::int64_t>(data.size()), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      std::uint64_t sums[16] = {};
      for (std::int64_t i = begin; i < end; i += 16) {
        for (int lane = 0; lane < 16; ++lane) sums[lane] += data[static_cast<std::size_t>(i + lane)];
        __builtin_prefetch(&data[0] + i + 512);
        __builtin_prefetch(&data[0] + i + 520);
      }
      sink += std::accumulate(std::begin(sums), std::end(sums), std::uint64_t{0});
    });
    best = std::max(best, static_cast<double>(data.size() * sizeof(std::uint64_t)) / seconds_since(start));
  }
  return sink.load() == 0 ? 0 : best;
}

// Floating-point operations per second of the matrix kernel on operands that stay in the caches.
double measure_peak(rl::kernel::ThreadPool& pool) {
  const std::int64_t rows = 128, in = 1024, out = 768;
  const std::vector<float> x(static_cast<std::size_t>(rows * in), 0.5F), w(static_cast<std::size_t>(out * in), 0.25F);
  std::vector<float> y(static_cast<std::size_t>(rows * out));
  double best = 0;
  for (int pass = 0; pass < 60; ++pass) {
    const Clock::time_point start = Clock::now();
    rl::kernel::linear(pool, x.data(), rows, in, w.data(), nullptr, out, y.data());
    best = std::max(best, 2.0 * static_cast<double>(rows * in * out) / seconds_since(start));
  }
  return best;
}

struct RunTimes {
  double prefill_tok_per_s = 0;
  double decode_tok_per_s = 0;
};

runtime::Result<RunTimes> run_once(rl::Transformer& model, std::int64_t batch, const Options& options, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<rl::Request> requests;
  for (std::int64_t i = 0; i < batch; ++i) {
    rl::Request request;
    for (std::int64_t t = 0; t < options.prompt_tokens; ++t) {
      request.prompt_ids.push_back(static_cast<std::int32_t>(generator() % static_cast<std::uint64_t>(model.config().vocab_size)));
    }
    request.sampling.max_new_tokens = options.new_tokens;
    request.sampling.ignore_eos = true;
    request.sampling.seed = generator();
    requests.push_back(std::move(request));
  }
  // One step reads all prompts, so that every later step only decodes.
  auto engine = rl::Engine::create(model, {.cache = {.bytes_max = std::int64_t{8} << 30},
                                           .sequences_max = batch,
                                           .step_tokens_max = batch * options.prompt_tokens});
  if (!engine.ok()) return engine.status();
  const Clock::time_point start = Clock::now();
  double prefilled = 0;
  auto completions = (*engine)->generate(requests, [&](const rl::EngineProgress&) {
    if (prefilled == 0) prefilled = seconds_since(start);
    return true;
  });
  const double end = seconds_since(start);
  if (!completions.ok()) return completions.status();
  for (const rl::Completion& completion : *completions) {
    if (!completion.status.ok()) return completion.status;
  }
  const auto decoded = static_cast<double>(batch * (options.new_tokens - 1));
  return RunTimes{.prefill_tok_per_s = static_cast<double>(batch * options.prompt_tokens) / prefilled, .decode_tok_per_s = decoded / (end - prefilled)};
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string commit() {
  std::string text;
  if (FILE* pipe = popen("git rev-parse HEAD 2>/dev/null", "r")) {
    char buffer[64];
    if (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text = buffer;
    pclose(pipe);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "unknown" : text;
}

int fail(const runtime::Status& status) {
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return 1;
}

int run(const Options& options) {
  auto loaded = rl::Transformer::load(options.model, {.threads = options.threads});
  if (!loaded.ok()) return fail(loaded.status());
  rl::Transformer& model = **loaded;
  rl::kernel::ThreadPool& pool = model.pool();
  const double bandwidth = measure_bandwidth(pool);
  const double peak = measure_peak(pool);
  const auto parameters = static_cast<double>(model.parameters().count());
  const rl::ModelConfig& config = model.config();
  const auto embedding = static_cast<double>(config.vocab_size * config.hidden_size);
  const double matrix_parameters = parameters - (config.tie_word_embeddings ? 0 : embedding);  // read and multiplied for every token

  Json report{{"machine", cpu_name()},
              {"threads", pool.threads()},
              {"isa", rl::kernel::to_string(rl::kernel::current_isa())},
              {"commit", commit()},
              {"model", options.model},
              {"prompt_len", options.prompt_tokens},
              {"new_tokens", options.new_tokens},
              {"repeat", options.repeat},
              {"weight_bytes", parameters * 4},
              {"memory_gb_per_s", bandwidth / 1e9},
              {"peak_gflop_per_s", peak / 1e9}};
  for (std::int64_t batch : options.batches) {
    std::vector<double> prefill, decode;
    for (int i = 0; i < options.repeat; ++i) {
      auto times = run_once(model, batch, options, static_cast<std::uint32_t>(i + 1));
      if (!times.ok()) return fail(times.status());
      prefill.push_back(times->prefill_tok_per_s);
      decode.push_back(times->decode_tok_per_s);
    }
    const std::string name = "b" + std::to_string(batch);
    const Spread decoding = spread_of(decode), reading = spread_of(prefill);
    const double steps_per_s = decoding.median / static_cast<double>(batch);
    report["decode_" + name + "_tok_per_s"] = decoding.median;
    report["decode_" + name + "_spread"] = decoding.relative;
    report["decode_" + name + "_share_of_bandwidth"] = steps_per_s * matrix_parameters * 4 / bandwidth;
    report["decode_" + name + "_share_of_peak"] = decoding.median * 2 * matrix_parameters / peak;
    report["prefill_" + name + "_tok_per_s"] = reading.median;
    // The output layer runs for the last token of a prompt only.
    report["prefill_" + name + "_share_of_peak"] = reading.median * 2 * (matrix_parameters - embedding) / peak;
    if (!report.contains("prefill_tok_per_s")) report["prefill_tok_per_s"] = reading.median;  // of the smallest batch: one prompt
  }
  if (options.json) {
    std::cout << report.dump() << '\n';
  } else {
    for (const auto& [key, value] : report.items()) std::printf("%-34s %s\n", key.c_str(), value.is_number_float() ? std::to_string(value.get<double>()).c_str() : value.dump().c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Rollout speed: decoding and reading prompts at several batch sizes.");
  Options options;
  app.add_option("--model", options.model, "a Hugging Face folder or a .gguf file")->required();
  app.add_option("--batch", options.batches, "batch sizes")->delimiter(',')->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--prompt-len", options.prompt_tokens, "tokens per prompt")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--new-tokens", options.new_tokens, "tokens to generate")->check(CLI::Range(2, 1 << 20))->capture_default_str();
  app.add_option("--threads", options.threads, "default: all cores");
  app.add_option("--repeat", options.repeat, "runs per batch size")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--json", options.json, "one JSON line");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
