#include "runtime/call/caller_options.h"

#include "runtime/schema/call.capnp.h"
#include "runtime/transport/capnp_codec.h"

namespace runtime {

namespace {
/// More than any class has methods.
constexpr std::size_t kMethodTimeoutsMax = 4096;
constexpr std::uint64_t kTimeoutMaxMs = 1ull << 40;
}  // namespace

std::string encode_caller_options(const CallerOptions& options) {
  if (options.is_default()) return {};
  const Buffer encoded = encode<schema::CallerOptions>([&](schema::CallerOptions::Builder out) {
    out.setOutOfOrder(options.out_of_order);
    auto timeouts = out.initMethodTimeouts(static_cast<unsigned>(options.method_timeouts.size()));
    unsigned at = 0;
    for (const auto& [method, timeout] : options.method_timeouts) {
      timeouts[at].setMethod(to_text(method));
      timeouts[at++].setMs(static_cast<std::uint64_t>(timeout.count()));
    }
  });
  return std::string(encoded.text());
}

Result<CallerOptions> decode_caller_options(const std::string& bytes) {
  CallerOptions options;
  if (bytes.empty()) return options;
  Status status = decode<schema::CallerOptions>(
      Buffer::copy_of(bytes), "caller options", [&](schema::CallerOptions::Reader in) -> Status {
        options.out_of_order = in.getOutOfOrder();
        if (in.getMethodTimeouts().size() > kMethodTimeoutsMax)
          return invalid_argument("too many timeouts of methods");
        for (auto timeout : in.getMethodTimeouts()) {
          if (timeout.getMs() == 0 || timeout.getMs() > kTimeoutMaxMs)
            return invalid_argument("a method's timeout out of range");
          options.method_timeouts[to_string(timeout.getMethod())] =
              std::chrono::milliseconds(timeout.getMs());
        }
        return {};
      });
  if (!status.ok()) return status;
  return options;
}

}  // namespace runtime
