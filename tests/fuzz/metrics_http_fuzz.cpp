// HTTP requests of a stranger to the node's port.
#include <cstdint>
#include <string_view>

#include "runtime/metrics/metrics_http.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto request = runtime::parse_http_request({reinterpret_cast<const char*>(data), size});
  if (request.ok() && request->complete)
    (void)runtime::http_refusal(*request, runtime::shows_key(*request, {"0123456789abcdef"}));
  return 0;
}
