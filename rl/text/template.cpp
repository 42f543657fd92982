#include "rl/text/template.h"

#include "rl/text/template_failure.h"
#include "rl/text/template_parser.h"
#include "rl/text/template_renderer.h"

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
