#include "rl/template/template.h"

#include "rl/template/failure.h"
#include "rl/template/parser.h"
#include "rl/template/renderer.h"

namespace rl {

struct ChatTemplate::Parsed {
  Block block;
};

runtime::Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  try {
    auto parsed = std::make_shared<Parsed>();
    parsed->block = parse_template(source);
    return ChatTemplate(std::move(parsed));
  } catch (const TemplateFailure& failure) {
    return failure.status;
  }
}

runtime::Result<std::string> ChatTemplate::render(const nlohmann::ordered_json& variables,
                                                  const TemplateLimits& limits) const {
  try {
    TemplateRenderer renderer(variables, limits);
    return renderer.run(parsed_->block);
  } catch (const TemplateFailure& failure) {
    return failure.status;
  }
}

}  // namespace rl
