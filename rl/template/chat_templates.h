// A model's chat templates: one, or several by name.
#pragma once

#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "rl/template/template.h"
#include "runtime/core/result.h"

namespace rl {

/// What a template is called where there is only one, and what transformers takes for chats with
/// tools where a model has it.
inline constexpr const char* kDefaultTemplate = "default";
inline constexpr const char* kToolUseTemplate = "tool_use";

/// Where further templates lie in a model folder, as NAME.jinja.
inline constexpr const char* kTemplateFolder = "additional_chat_templates";

/// Immutable and cheap to copy; rendering is thread-safe.
class ChatTemplates {
 public:
  ChatTemplates() = default;

  /// Name to source. Errors: as ChatTemplate::parse, with the name where there are several.
  static runtime::Result<ChatTemplates> parse(const std::map<std::string, std::string>& sources);

  /// A template that stands for all.
  static runtime::Result<ChatTemplates> parse(const std::string& source);

  bool empty() const { return by_name_.empty(); }

  /// As ChatTemplate::render. With `tools` that are not null the template named tool_use, if there
  /// is one. kNotFound: the model has none for chats without tools.
  runtime::Result<std::string> render(const nlohmann::ordered_json& variables,
                                      const TemplateLimits& limits = {}) const;

  /// The same of a chat. A message whose content is null or left out, since it only calls tools, is
  /// given to the template as it is. One for which that would write "None" or fail gets the empty
  /// text.
  runtime::Result<std::string> render_chat(const nlohmann::ordered_json& variables,
                                           const TemplateLimits& limits = {}) const;

  /// As render(), with the choice made by the caller.
  runtime::Result<std::string> render_for(bool tools, const nlohmann::ordered_json& variables,
                                          const TemplateLimits& limits = {}) const;

 private:
  /// With the empty text for those messages without content that cannot be rendered otherwise, in
  /// `variables` too.
  runtime::Result<std::string> render_filled(nlohmann::ordered_json& variables,
                                             const TemplateLimits& limits) const;

  std::map<std::string, ChatTemplate> by_name_;
};

}  // namespace rl
