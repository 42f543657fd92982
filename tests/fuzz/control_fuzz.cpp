// The control plane's decoders on any bytes: the first byte chooses which.
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/control/control_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::vector<std::uint64_t> words((size - 1) / 8);
  if (!words.empty()) std::memcpy(words.data(), data + 1, words.size() * 8);
  runtime::Buffer meta = runtime::Buffer::adopt(std::move(words));
  switch (data[0] % 3) {
    case 0: {
      auto request = runtime::decode_control_request(meta);
      if (request.ok()) (void)runtime::encode(*request);
      break;
    }
    case 1: (void)runtime::decode_control_reply(meta); break;
    default: (void)runtime::decode_control_event(meta);
  }
  return 0;
}
