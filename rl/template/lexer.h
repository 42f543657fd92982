// The words of a template. Whitespace control happens here: trim_blocks and lstrip_blocks as
// transformers sets them, "-" and "+" at tags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rl {

enum class TokenKind {
  kText,           // what stands between tags
  kVariableBegin,  // {{
  kVariableEnd,    // }}
  kBlockBegin,     // {%
  kBlockEnd,       // %}
  kName,
  kInteger,
  kFloat,
  kString,    // unescaped
  kOperator,  // one of + - * / // % ** ~ [ ] ( ) { } == != < > <= >= = . : | , ;
  kEnd,
};

struct TemplateToken {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;

  bool is_operator(std::string_view symbol) const {
    return kind == TokenKind::kOperator && text == symbol;
  }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

/// Throws TemplateFailure (failure.h). The last token is kEnd. Sources over 1 MiB are
/// refused.
std::vector<TemplateToken> lex_template(std::string_view source);

}  // namespace rl
