#include "rl/template/lexer.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/rl/template/failure_of.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using testing::template_failure;

// The tokens in one line: texts in <>, strings in quotes, the others as they are.
std::string words_of(std::string_view source) {
  std::string words;
  for (const TemplateToken& token : lex_template(source)) {
    switch (token.kind) {
      case TokenKind::kText: words += "<" + token.text + ">"; break;
      case TokenKind::kVariableBegin: words += "{{"; break;
      case TokenKind::kVariableEnd: words += "}}"; break;
      case TokenKind::kBlockBegin: words += "{%"; break;
      case TokenKind::kBlockEnd: words += "%}"; break;
      case TokenKind::kString: words += "\"" + token.text + "\""; break;
      case TokenKind::kFloat: words += "f" + token.text; break;
      case TokenKind::kInteger: words += "i" + token.text; break;
      case TokenKind::kName:
      case TokenKind::kOperator: words += " " + token.text; break;
      case TokenKind::kEnd: words += "."; break;
    }
  }
  return words;
}

TEST(TemplateLexer, BlocksTakeTheirIndentAndTheirNewline) {
  EXPECT_EQ(words_of("a\n  {% x %}\n  b\n\t{# c #}\nd"), "<a\n>{% x%}<  b\n><d>.");
  EXPECT_EQ(words_of("  {{ x }}\nb"), "<  >{{ x}}<\nb>.") << "a variable takes neither";
  EXPECT_EQ(words_of("a  {% x %}"), "<a  >{% x%}.") << "text stands in front";
  EXPECT_EQ(words_of("{{ x }}  {% y %}"), "{{ x}}<  >{% y%}.") << "a variable stands in front";
}

TEST(TemplateLexer, SignsDecideWhatATagTakes) {
  EXPECT_EQ(words_of("a \n {%- x -%} \n b"), "<a>{% x%}<b>.");
  EXPECT_EQ(words_of("  {%+ x +%}\nb"), "<  >{% x%}<\nb>.");
  EXPECT_EQ(words_of("a {{- x -}} b"), "<a>{{ x}}<b>.");
  EXPECT_EQ(words_of("a {#- c -#} b"), "<a><b>.");
  EXPECT_EQ(words_of("{{ x + -1 }}"), "{{ x + -i1}}.") << "no signs of a tag";
}

TEST(TemplateLexer, RawTextAndCommentsHoldNoTags) {
  EXPECT_EQ(words_of("{% raw %}{{ a }}{% b %}{% endraw %}c"), "<{{ a }}{% b %}><c>.");
  EXPECT_EQ(words_of("{%- raw -%}  a  {%- endraw -%}  b"), "<a><b>.");
  EXPECT_EQ(words_of("{# {{ a }} {% b #}c"), "<c>.");
  EXPECT_EQ(words_of("{% rawer %}"), "{% rawer%}.");
}

TEST(TemplateLexer, BracesInBracketsDoNotEndAVariable) {
  EXPECT_EQ(words_of("{{ {'a': {}} }}}"), "{{ {\"a\" : { } }}}<}>.");
  EXPECT_EQ(words_of("{{ '}}' }}"), "{{\"}}\"}}.");
}

TEST(TemplateLexer, LiteralsAreReadAsPythonDoes) {
  EXPECT_EQ(words_of("{{ 1_000 0x1F 0o17 0b11 1.5 2e3 1.e 3.x }}"),
            "{{i1000i31i15i3f1.5f2e3i1 . ei3 . x}}.");
  EXPECT_EQ(words_of(R"({{ 'a\n\'\x41\u00e9\101\q' "it's" }})"),
            "{{\"a\n'A\u00e9A\\q\"\"it's\"}}.");
}

TEST(TemplateLexer, LinesCountWhicheverWayTheyEnd) {
  const auto tokens = lex_template("a\r\nb\rc\n{# \n #}{{\n x }}\n");
  EXPECT_EQ(tokens[0].text, "a\nb\nc\n");
  ASSERT_TRUE(tokens[2].is_name("x"));
  EXPECT_EQ(tokens[1].line, 5);
  EXPECT_EQ(tokens[2].line, 6);
  EXPECT_EQ(tokens.back().kind, TokenKind::kEnd);
  EXPECT_EQ(tokens.size(), 5u) << "the last line's end is no text";
}

TEST(TemplateLexer, ErrorsNameTheLineWhereTheThingBegan) {
  const auto failure = [](const std::string& source) {
    return template_failure([&] { lex_template(source); }).to_string();
  };
  EXPECT_EQ(failure("\n{{ x\n\n"), "invalid argument: line 2: '}}' is missing");
  EXPECT_EQ(failure("\n{% x\n\n"), "invalid argument: line 2: '%}' is missing");
  EXPECT_EQ(failure("{# \n\n"), "invalid argument: line 1: the end of the comment is missing");
  EXPECT_EQ(failure("\n{% raw %}\n\n{{"),
            "invalid argument: line 2: the end of the raw block is missing");
  EXPECT_EQ(failure("{{\n'a }}"), "invalid argument: line 2: the end of a string is missing");
  EXPECT_EQ(failure("{{ '\\u00' }}"), "invalid argument: line 1: a string has a truncated escape");
  EXPECT_EQ(failure("{{ (1] }}"), "invalid argument: line 1: unexpected ']'");
  EXPECT_EQ(failure("{{ a ? }}"), "invalid argument: line 1: unexpected character '?'");
  EXPECT_EQ(failure("{{ 0b12 }}"), "unimplemented: line 1: the number 0b12 is not supported");
}

TEST(TemplateLexer, SourcesHaveALimit) {
  const std::string most(1 << 20, 'a');
  EXPECT_EQ(lex_template(most).size(), 2u);
  EXPECT_EQ(template_failure([&] { lex_template(most + "a"); }).code(),
            ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace rl
