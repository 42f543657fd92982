#include "rl/run/rl/rollout_dump.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "rl/data/json_text.h"
#include "rl/metrics/held_back.h"
#include "rl/metrics/log_file.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Of each token of the response; 0 where it is not learned.
std::vector<float> dumped_advantages(const DumpedSample& sample) {
  const std::vector<std::uint8_t>& mask = sample.text.mask;
  std::vector<float> of_tokens(sample.text.tokens.size(), 0.0F);
  std::size_t learned = 0;
  for (std::size_t token = 0; token < of_tokens.size(); ++token) {
    if (token < mask.size() && mask[token] == 0) continue;
    const std::size_t at = sample.advantages.size() == 1 ? 0 : learned++;
    if (at < sample.advantages.size()) of_tokens[token] = sample.advantages[at];
  }
  return of_tokens;
}

Status write_file(const RolloutDump& dump, const std::string& text) {
  const std::filesystem::path file = dump.folder / (std::to_string(dump.step) + ".jsonl");
  Result<LogFile> log = dump.append ? LogFile::open(file) : LogFile::create(file);
  Status written = log.ok() ? log->write(text) : log.status();
  std::error_code ignored;
  if (log.ok() && !written.ok() && !dump.append)
    std::filesystem::remove(file, ignored);  // no empty file
  return written.with_context("samples of step " + std::to_string(dump.step));
}

}  // namespace

bool has_dumps(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() == ".jsonl" && !stem.empty() &&
        std::all_of(stem.begin(), stem.end(), [](unsigned char c) { return std::isdigit(c); }))
      return true;
  }
  return false;
}

std::string encode_samples(std::int64_t step, const std::vector<DumpedSample>& samples) {
  std::string text;
  for (const DumpedSample& dumped : samples) {
    const SampleText& sample = dumped.text;
    nlohmann::ordered_json line = {
        {"input", sample.prompt},
        {"output", sample.response},
        {"gts", text_as_json(sample.ground_truth, sample.ground_truth_is_json)},
        {"score", sample.score},
        {"step", step}};
    for (const auto& [name, value] : dumped.extras) {
      if (!line.contains(name)) line[name] = value;
    }
    if (!sample.tokens.empty()) {
      line["tokens"] = sample.tokens;
      line["logprobs"] = sample.logprobs;
      if (!dumped.advantages.empty()) line["advantages"] = dumped_advantages(dumped);
      if (!sample.mask.empty()) line["response_mask"] = sample.mask;
    }
    text += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  }
  return text;
}

void RolloutDumper::write(const RolloutDump& dump, const std::vector<DumpedSample>& samples) {
  const std::size_t waiting = unwritten_.size();
  unwritten_.push_back({dump, encode_samples(dump.step, samples)});
  const Status written = flush();
  if (!written.ok() && waiting == 0)
    LOG(warn,
        "{}; training continues, and samples that could not be written are retried at each step",
        written.message());
  if (written.ok() && waiting > 0)
    LOG(info, "{} has the samples that could not be written before", dump.folder.string());
}

Status RolloutDumper::flush() {
  const Status written = write_in_order(
      unwritten_, [](const Unwritten& oldest) { return write_file(oldest.dump, oldest.text); });
  if (written.ok()) return {};
  give_up_oldest();
  return written.with_context(std::to_string(unwritten_.size()) +
                              " file(s) of samples could not be written");
}

void RolloutDumper::give_up_oldest() {
  auto bytes =
      std::accumulate(unwritten_.begin(), unwritten_.end(), std::size_t{0},
                      [](std::size_t sum, const Unwritten& one) { return sum + one.text.size(); });
  for (; bytes > kUnwrittenBytesMax; unwritten_.pop_front()) {
    bytes -= unwritten_.front().text.size();
    LOG(warn, "samples of step {} are dropped: too many wait to be written",
        unwritten_.front().dump.step);
  }
}

}  // namespace rl
