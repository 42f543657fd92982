#include "rl/train/rollout_dump.h"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace rl {

namespace {

// Of each token of the response; 0 where it is not learned.
std::vector<float> token_advantages(const DumpedSample& sample) {
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

}  // namespace

runtime::Status write_rollout_dump(const RolloutDump& dump, const std::vector<DumpedSample>& samples) {
  std::error_code error;
  std::filesystem::create_directories(dump.folder, error);
  if (error) return runtime::errno_status(error.value(), "folder of samples " + dump.folder.string());
  const std::filesystem::path file = dump.folder / (std::to_string(dump.step) + ".jsonl");
  std::ofstream out(file, dump.append ? std::ios::app : std::ios::trunc);
  for (const DumpedSample& dumped : samples) {
    const SampleText& sample = dumped.text;
    nlohmann::ordered_json line = {{"input", sample.prompt}, {"output", sample.response}, {"gts", sample.ground_truth}, {"score", sample.score}, {"step", dump.step}};
    for (const auto& [name, value] : dumped.extras) {
      if (!line.contains(name)) line[name] = value;
    }
    if (!sample.tokens.empty()) {
      line["tokens"] = sample.tokens;
      line["logprobs"] = sample.logprobs;
      if (!dumped.advantages.empty()) line["advantages"] = token_advantages(dumped);
      if (!sample.mask.empty()) line["response_mask"] = sample.mask;
    }
    out << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  }
  out.close();
  if (out) return {};
  const int reason = errno != 0 ? errno : EIO;
  if (!dump.append) std::filesystem::remove(file, error);  // no part of a step's samples, and no empty file
  return runtime::errno_status(reason, "samples of step " + std::to_string(dump.step) + " to " + file.string());
}

}  // namespace rl
