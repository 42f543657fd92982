// Speed of the rollout engine, in reading prompts and in generation, against the limits of the
// machine's memory and FMA units.
//
//   bench_rollout --model PATH --batch 1,16,64 --prompt-len 48 --new-tokens 32 --json
//   bench_rollout --model PATH --weights fp32,int8     both in turn, and how far 8-bit log-probs
//                                                      are from fp32's
//   bench_rollout --model PATH --weights fp32,aten     the same of deterministic=false
//   bench_rollout --model PATH --suite table,samples,tail,memory     see rollout_suites.h
//
// Random token ids, sampled at temperature 1, end-of-sequence ignored. Decoding is timed from the
// first step after all prompts are read; medians over --repeat runs, with the spread (max - min) /
// median. Bandwidth and peak are measured in the same run.
#include <ATen/Parallel.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/micro/rollout_suites.h"
#include "rl/kernel/kernel.h"

namespace {

using namespace bench;

int fail(const runtime::Status& status) {
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return 1;
}

// What the machine allows, and what a token takes of it.
struct Limits {
  double bandwidth = 0;
  double peak = 0;
  double matrix_parameters = 0;  // read and multiplied for every token
  double embedding = 0;          // of them in the output layer
};

struct Figures {
  std::vector<double> prefill, decode;
};

void report_batch(Json& report, const std::string& prefix, std::int64_t batch,
                  const Figures& figures, double weight_bytes, const Limits& limits) {
  const std::string name = "b" + std::to_string(batch);
  const Spread decoding = spread_of(figures.decode), reading = spread_of(figures.prefill);
  const double steps_per_s = decoding.median / static_cast<double>(batch);
  report[prefix + "decode_" + name + "_tok_per_s"] = decoding.median;
  report[prefix + "decode_" + name + "_spread"] = decoding.relative;
  report[prefix + "decode_" + name + "_share_of_bandwidth"] =
      steps_per_s * weight_bytes / limits.bandwidth;
  report[prefix + "decode_" + name + "_share_of_peak"] =
      decoding.median * 2 * limits.matrix_parameters / limits.peak;
  report[prefix + "prefill_" + name + "_tok_per_s"] = reading.median;
  // The output layer runs for the last token of a prompt only.
  report[prefix + "prefill_" + name + "_share_of_peak"] =
      reading.median * 2 * (limits.matrix_parameters - limits.embedding) / limits.peak;
  if (!report.contains(prefix + "prefill_tok_per_s"))
    report[prefix + "prefill_tok_per_s"] = reading.median;  // of the smallest batch: one prompt
}

// Every batch size with all kinds of weights, in turn within each repetition so that they share the
// machine's moods.
runtime::Status run_batches(const rl::Transformer& model, const Options& options,
                            const Limits& limits, Json& report) {
  std::map<std::string, Difference> differences;
  for (std::int64_t batch : options.batches) {
    std::map<std::string, Figures> figures;
    std::map<std::string, double> weight_bytes;
    for (int i = 0; i < options.repeat; ++i) {
      for (const std::string& weights : options.weights) {
        const BatchShape shape{.batch = batch,
                               .prompt_tokens = options.prompt_tokens,
                               .new_tokens = options.new_tokens};
        auto run = run_batch(model, shape, weights, static_cast<std::uint32_t>(i + 1));
        if (!run.ok()) return run.status();
        figures[weights].prefill.push_back(run->prefill_tok_per_s);
        figures[weights].decode.push_back(run->decode_tok_per_s);
        weight_bytes[weights] = run->copied_weight_bytes > 0
                                    ? static_cast<double>(run->copied_weight_bytes)
                                    : limits.matrix_parameters * 4;
        if (weights == "fp32") continue;
        if (runtime::Status status = add_differences(model, *run, 16, differences[weights]);
            !status.ok())
          return status;
      }
    }
    for (const std::string& weights : options.weights) {
      report_batch(report, weights == "fp32" ? "" : weights + "_", batch, figures[weights],
                   weight_bytes[weights], limits);
      if (weights != "fp32" && figures.contains("fp32")) {
        report[weights + "_decode_b" + std::to_string(batch) + "_to_fp32"] =
            spread_of(figures[weights].decode).median / spread_of(figures["fp32"].decode).median;
      }
      if (weights != "fp32") report[weights + "_weight_bytes"] = weight_bytes[weights];
    }
  }
  for (const auto& [weights, difference] : differences) {
    report[weights + "_logprob_difference_mean"] =
        difference.sum / static_cast<double>(difference.tokens);
    report[weights + "_logprob_difference_max"] = difference.largest;
    report[weights + "_logprob_difference_tokens"] = difference.tokens;
  }
  return {};
}

runtime::Status run_suites(const rl::Transformer& model, const Options& options, Json& report) {
  for (const std::string& suite : options.suites) {
    auto figures = suite == "table"     ? table_suite(model, options)
                   : suite == "samples" ? samples_suite(model, options)
                   : suite == "tail"    ? tail_suite(model, options)
                                        : memory_suite(model, options);
    if (!figures.ok()) return figures.status().with_context(suite);
    report[suite] = std::move(*figures);
  }
  return {};
}

void print(const Json& report) {
  const auto text = [](const Json& value) {
    return value.is_number_float() ? std::to_string(value.get<double>()) : value.dump();
  };
  for (const auto& [key, value] : report.items()) {
    if (!value.is_structured()) {
      std::printf("%-38s %s\n", key.c_str(), text(value).c_str());
      continue;
    }
    std::printf("%s\n", key.c_str());
    for (const Json& row : value.is_array() ? value : Json::array({value})) {
      for (const auto& [name, cell] : row.items())
        std::printf("  %s %s", name.c_str(), text(cell).c_str());
      std::printf("\n");
    }
  }
}

int run(const Options& options) {
  if (options.threads > 0) at::set_num_threads(options.threads);
  auto loaded =
      rl::Transformer::load(options.model, {.threads = options.threads, .device = options.device});
  if (!loaded.ok()) return fail(loaded.status());
  rl::Transformer& model = **loaded;
  rl::kernel::ThreadPool& pool = model.pool();
  const auto parameters = static_cast<double>(model.parameters().count());
  const rl::ModelConfig& config = model.config();
  const auto embedding = static_cast<double>(config.vocab_size * config.hidden_size);
  const double load = load_average();
  const Limits limits{
      .bandwidth = measure_bandwidth(pool),
      .peak = measure_peak(pool),
      .matrix_parameters = parameters - (config.tie_word_embeddings ? 0 : embedding),
      .embedding = embedding};

  Json report{{"machine", cpu_name()},
              {"load_average_before", load},
              {"threads", pool.threads()},
              {"device", options.device},
              {"isa", rl::kernel::to_string(rl::kernel::current_isa())},
              {"commit", commit()},
              {"model", options.model},
              {"prompt_len", options.prompt_tokens},
              {"new_tokens", options.new_tokens},
              {"repeat", options.repeat},
              {"weight_bytes", parameters * 4},
              {"memory_gb_per_s", limits.bandwidth / 1e9},
              {"peak_gflop_per_s", limits.peak / 1e9}};
  const runtime::Status status = options.suites.empty()
                                     ? run_batches(model, options, limits, report)
                                     : run_suites(model, options, report);
  if (!status.ok()) return fail(status);
  if (options.json)
    std::cout << report.dump() << '\n';
  else
    print(report);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Rollout speed: decoding and reading prompts at several batch sizes.");
  Options options;
  app.add_option("--model", options.model, "a Hugging Face folder or a .gguf file")->required();
  app.add_option("--batch", options.batches, "batch sizes")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--prompt-len", options.prompt_tokens, "tokens per prompt")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--new-tokens", options.new_tokens, "tokens to generate")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--weights", options.weights,
                 "fp32, int8, aten (fp32 with deterministic=false) or several; suites but the "
                 "table take the first")
      ->delimiter(',')
      ->check(CLI::IsMember({"fp32", "int8", "aten"}))
      ->capture_default_str();
  app.add_option(
         "--suite", options.suites,
         "instead of the batches. table: speeds against batch and length. samples: 8 of one prompt "
         "against one. tail: continuous against static batching. memory: against live tokens")
      ->delimiter(',')
      ->check(CLI::IsMember({"table", "samples", "tail", "memory"}));
  app.add_option("--lengths", options.lengths, "prompt lengths of the table")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu, or cuda, where every kind is aten")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "default: all cores");
  app.add_option("--repeat", options.repeat, "runs per figure")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--json", options.json, "one JSON line");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
