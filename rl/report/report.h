// A run as one HTML page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rl/report/run_log.h"

namespace rl {

struct ReportOptions {
  std::vector<std::int64_t> sample_steps;  // whose responses are shown; empty: the first that was
                                           // kept, the middle one and the last
  std::int64_t samples_per_step = 8;
};

/// A page that needs nothing besides itself. It has curves of all metrics, the time of each role,
/// how the rewards are spread, and the configuration. It also has responses whose tokens are
/// coloured by log-probability or advantage. kNotFound: a step of `sample_steps` that nothing was
/// kept of, with those that there are.
runtime::Result<std::string> report_html(const RunLog& run, const ReportOptions& options);

}  // namespace rl
