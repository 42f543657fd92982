// HttpMetricsServer: answers scrapers on the event loop, a request a connection.
#pragma once

#include "runtime/observe/metrics_source.h"

namespace runtime {

/// Text and server, for a node that is to have metrics.
MetricsProvider http_metrics();

}  // namespace runtime
