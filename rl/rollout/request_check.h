// Private to rl/rollout: whether an engine can serve a request.
#pragma once

#include <cstdint>

#include "rl/rollout/engine_setting.h"
#include "rl/rollout/kv_cache.h"
#include "rl/rollout/request.h"
#include "runtime/core/status.h"

namespace rl {

inline constexpr std::int64_t kSamplesMax = 1 << 20;  // of one request

/// kInvalidArgument names the field; kResourceExhausted: `open` requests are as many as there may
/// be, or the request alone needs more than the cache.
runtime::Status check_request(const EngineSetting& setting, const KvCache& cache, std::int64_t open,
                              const Request& request);

}  // namespace rl
