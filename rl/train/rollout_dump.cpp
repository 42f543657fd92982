#include "rl/train/rollout_dump.h"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace rl {

runtime::Status write_rollout_dump(const RolloutDump& dump, const std::vector<SampleText>& samples, const std::vector<float>& advantages) {
  std::error_code error;
  std::filesystem::create_directories(dump.folder, error);
  if (error) return runtime::errno_status(error.value(), "folder of samples " + dump.folder.string());
  const std::filesystem::path file = dump.folder / (std::to_string(dump.step) + ".jsonl");
  std::ofstream out(file, dump.append ? std::ios::app : std::ios::trunc);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const SampleText& sample = samples[i];
    nlohmann::ordered_json line = {{"input", sample.prompt}, {"output", sample.response}, {"gts", sample.ground_truth}, {"score", sample.score}, {"step", dump.step}};
    if (!sample.tokens.empty()) {
      line["tokens"] = sample.tokens;
      line["logprobs"] = sample.logprobs;
      if (!advantages.empty()) line["advantages"] = std::vector<float>(sample.tokens.size(), advantages[i]);
      if (!sample.mask.empty()) line["response_mask"] = sample.mask;
    }
    out << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  }
  out.close();
  if (!out) return runtime::errno_status(errno != 0 ? errno : EIO, "samples of step " + std::to_string(dump.step) + " to " + file.string());
  return {};
}

}  // namespace rl
