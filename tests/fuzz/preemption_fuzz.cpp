// Answers of a file, a command or a metadata endpoint about this machine: any words. The first byte
// chooses the kind.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/node/preemption.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  runtime::Result<runtime::PreemptionAnswer> answer = runtime::PreemptionAnswer();
  switch (data[0] % 5) {
    case 0: answer = runtime::read_preemption_words(text); break;
    case 1: answer = runtime::read_aws_action(text, std::chrono::seconds(1'789'700'000)); break;
    case 2: answer = runtime::read_gcp_preempted(text); break;
    case 3: {
      auto token = runtime::read_aws_token(text);
      if (token.ok() && token->find_first_of("\r\n ") != std::string::npos) std::abort();
      break;
    }
    default: {
      auto url = runtime::PreemptionUrl::parse(std::string(text));
      if (url.ok() && (url->host.empty() || url->port.empty())) std::abort();
    }
  }
  if (answer.ok() && *answer && (*answer)->left && (*answer)->left->count() < 0) std::abort();
  return 0;
}
