#include "rl/train/rollout_dump.h"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace rl {

runtime::Status write_rollout_dump(const std::filesystem::path& folder, std::int64_t step, const std::vector<SampleText>& samples, bool append) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return runtime::errno_status(error.value(), "folder of samples " + folder.string());
  const std::filesystem::path file = folder / (std::to_string(step) + ".jsonl");
  std::ofstream out(file, append ? std::ios::app : std::ios::trunc);
  for (const SampleText& sample : samples) {
    const nlohmann::ordered_json line = {
        {"input", sample.prompt}, {"output", sample.response}, {"gts", sample.ground_truth}, {"score", sample.score}, {"step", step}};
    out << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  }
  out.close();
  if (!out) return runtime::errno_status(errno != 0 ? errno : EIO, "samples of step " + std::to_string(step) + " to " + file.string());
  return {};
}

}  // namespace rl
