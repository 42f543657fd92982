#include "rl/reward/length_penalty.h"

#include <algorithm>
#include <string>

namespace rl {

runtime::Result<LengthPenalty> LengthPenalty::from_config(const Config& config) {
  const std::string kwargs = "reward.reward_kwargs.", section = kwargs + "overlong_buffer_cfg.";
  ConfigReader read(config);
  LengthPenalty penalty;
  penalty.enabled = read.find_bool(section + "enable").value_or(false);
  if (!read.status().ok()) return read.status();
  if (!penalty.enabled) return penalty;
  penalty.buffer = read.find_int(section + "len").value_or(0);
  penalty.factor = read.find_float(section + "penalty_factor").value_or(1.0);
  penalty.log = read.find_bool(section + "log").value_or(false);
  const auto response_max = read.find_int(kwargs + "max_resp_len");
  penalty.response_max = response_max ? *response_max : read.get_int("data.max_response_length");
  if (!read.status().ok()) return read.status();
  if (penalty.buffer < 1)
    return config.out_of_range(section + "len", "at least 1 token");  // it has no default
  if (penalty.buffer > penalty.response_max) {
    return config.out_of_range(section + "len", "at most " + kwargs + "max_resp_len = " +
                                                    std::to_string(penalty.response_max));
  }
  return penalty;
}

double LengthPenalty::of(std::int64_t response_tokens) const {
  if (!enabled) return 0.0;
  const std::int64_t beyond = response_tokens - (response_max - buffer);
  return std::min(0.0, -static_cast<double>(beyond) / static_cast<double>(buffer) * factor);
}

}  // namespace rl
