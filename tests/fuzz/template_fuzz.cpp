// A chat template from anywhere: it parses and renders within its limits, or fails with a message.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "rl/template/template.h"
#include "runtime/core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed =
      rl::ChatTemplate::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed.ok()) {
    CHECK(!parsed.status().message().empty());
    return 0;
  }
  const nlohmann::ordered_json variables = {
      {"messages",
       {{{"role", "user"}, {"content", "hi"}},
        {{"role", "assistant"},
         {"content", nullptr},
         {"tool_calls", {{{"name", "f"}, {"arguments", {{"a", 1.5}}}}}}}}},
      {"tools", nullptr},
      {"add_generation_prompt", true},
      {"bos_token", "<s>"},
      {"now", "2026-03-05T09:07:00"}};
  rl::TemplateLimits limits;
  limits.steps_max = 20'000;
  limits.output_bytes_max = 1 << 16;
  limits.work_bytes_max = 1 << 20;
  const auto text = parsed->render(variables, limits);
  if (text.ok()) {
    CHECK(text->size() <= limits.output_bytes_max);
  } else {
    CHECK(!text.status().message().empty());
  }
  return 0;
}
