// Values from outside, decoded as a type that uses every kind of codec.
#include "runtime/codec/codec.h"

#include "runtime/call/object_ref.h"
#include "runtime/codec/array_view.h"

namespace {

struct Tree {
  std::string name;
  std::vector<Tree> children;
  auto fields() { return std::tie(name, children); }
};

struct Everything {
  std::map<std::string, std::vector<float>> columns;
  std::optional<std::variant<int, std::string, std::vector<bool>>> choice;
  std::unordered_map<int, std::pair<double, runtime::Status>> by_number;
  runtime::ArrayView<std::int32_t> view;
  std::vector<runtime::ObjectRef<int>> refs;
  Tree tree;
  auto fields() { return std::tie(columns, choice, by_number, view, refs, tree); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  runtime::Decoder decoder(runtime::Buffer::copy_of(std::as_bytes(std::span(data, size))));
  auto value = runtime::decode_all<Everything>(decoder);
  if (value.ok()) {
    // What was accepted can be encoded again.
    runtime::Encoder encoder;
    runtime::encode_value(encoder, *value);
    (void)encoder.to_buffer();
  }
  return 0;
}
