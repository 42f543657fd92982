// The messages that callers and actors exchange.
#include "runtime/call/call_wire.h"

#include <cstdlib>

#include "runtime/call/caller_options.h"
#include "runtime/call/registry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace runtime;
  Buffer meta = Buffer::copy_of(std::as_bytes(std::span(data, size / 8 * 8)));
  auto no_loan = [](auto&&...) { return std::shared_ptr<const void>(); };
  CallRequest call;
  ObjectValue arguments;
  (void)decode_call(meta, {}, nullptr, no_loan, &call, &arguments);
  CallReply reply;
  ObjectValue value;
  (void)decode_reply(meta, {}, nullptr, no_loan, &reply, &value);
  (void)decode_notice(meta).ok();
  (void)decode_stream_item(meta, {}, nullptr, no_loan).ok();
  std::string signature;
  ObjectValue constructor_arguments;
  ExecutionOptions execution;
  if (decode_constructor(std::string(meta.text()), nullptr, &signature, &constructor_arguments,
                         &execution)
          .ok() &&
      !execution.check().ok())
    std::abort();
  if (auto options = decode_caller_options(std::string(meta.text()));
      options.ok() &&
      decode_caller_options(encode_caller_options(*options)).value_or({}) != *options)
    std::abort();
  return 0;
}
