#include "rl/app/render.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "runtime/core/printable_stream.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/terminal.h"

namespace rl {
namespace {

struct Rendered {
  bool all_read;
  std::string out;
};

Rendered render(const std::string& source, const std::string& lines) {
  const auto chat_template = ChatTemplates::parse(source);
  EXPECT_TRUE(chat_template.ok());
  std::istringstream in(lines);
  std::ostringstream out;
  const bool all_read = render_lines(*chat_template, {{"bos_token", "<s>"}}, in, out);
  return {all_read, out.str()};
}

TEST(RenderCommand, GivesTextOrErrorPerLine) {
  const Rendered result = render(
      "{{ bos_token }}{{ messages[0].content }}{% if tools is none and add_generation_prompt %}>{% "
      "endif %}{{ raise_exception('no') if "
      "refuse }}",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"h\u00e9\"}],\"add_generation_prompt\":true}"
      "\n\n"
      "{\"messages\":[{\"content\":\"a\"}],\"bos_token\":\"<b>\"}\n"
      "{\"messages\":[{}],\"refuse\":true}\n");
  EXPECT_TRUE(result.all_read);
  EXPECT_EQ(result.out,
            "{\"text\":\"<s>h\u00e9>\"}\n{\"text\":\"<b>a\"}\n{\"error\":\"TemplateError: no\"}\n");
}

// As training and agents render it.
TEST(RenderCommand, AMessageWithoutContentHasTheEmptyText) {
  const std::string chat =
      R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{}]}]})"
      "\n";
  for (const char* source : {"{% for m in messages %}[{{ m.content }}]{% endfor %}",
                             "{% for m in messages %}{{ '[' + m.content + ']' }}{% endfor %}",
                             "{% for m in messages %}[{{ m.content.strip() }}]{% endfor %}"})
    EXPECT_EQ(render(source, chat).out, "{\"text\":\"[a][]\"}\n") << source;
  EXPECT_EQ(render("{% for m in messages %}{{ m.content or 'call' }} {% endfor %}", chat).out,
            "{\"text\":\"a call \"}\n")
      << "a template that asks says what stands there";
}

TEST(RenderCommand, ToolsAreAListOfObjectsOrItsText) {
  const std::string source = "{% for tool in tools or [] %}<{{ tool.name }}>{% endfor %}";
  EXPECT_EQ(render(source, "{\"tools\":\"[{\\\"name\\\":\\\"f\\\"}]\"}\n").out,
            "{\"text\":\"<f>\"}\n");
  for (const char* other : {"\"f\"", "[\"f\"]", "{\"name\":\"f\"}"}) {
    const Rendered refused = render(source, "{\"tools\":" + std::string(other) + "}\n");
    EXPECT_TRUE(refused.out.starts_with("{\"error\":\"stdin:1: 'tools' must be a list of objects"))
        << refused.out;
  }
}

TEST(RenderCommand, NumbersLinesThatAreNoObjects) {
  const Rendered result = render("x", "{}\n[1]\n{\n");
  EXPECT_FALSE(result.all_read);
  EXPECT_EQ(result.out,
            "{\"text\":\"x\"}\n{\"error\":\"stdin:2: not a JSON object\"}\n{\"error\":\"stdin:3: "
            "not a JSON object\"}\n");
}

// Copying such a value would exhaust the stack.
TEST(RenderCommand, DeepLinesAreRefused) {
  const Rendered result =
      render("x", "{\"messages\": " + std::string(100'000, '[') + std::string(100'000, ']') +
                      "}\n" + std::string(100'000, '[') + "\n{}\n");
  EXPECT_FALSE(result.all_read);
  EXPECT_EQ(result.out,
            "{\"error\":\"stdin:1: nested deeper than 500\"}\n"
            "{\"error\":\"stdin:2: nested deeper than 500\"}\n{\"text\":\"x\"}\n");
}

TEST(RenderCommand, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(render("\xff", "{}\n").out, "{\"text\":\"\xef\xbf\xbd\"}\n");
}

// A template's text, and its error messages, are a model's.
TEST(RenderCommand, ATerminalGetsEscapesAndAFileTheText) {
  const support::TemporaryFolder folder;
  const std::string file = folder.file("t.jinja");
  std::ofstream(file) << "\u009b31m\u202e{{ raise_exception('\u009b\u202e') if refuse }}";
  std::string name = "render", option = "--template", path = file;
  char* arguments[] = {name.data(), option.data(), path.data()};
  const auto render_to_stdout = [&] {
    std::istringstream lines("{}\n{\"refuse\": true}\n");
    std::streambuf* const before = std::cin.rdbuf(lines.rdbuf());
    {
      const runtime::PrintableStream printable(std::cout, STDOUT_FILENO);
      EXPECT_EQ(render_command(3, arguments), 0);
    }
    std::cin.rdbuf(before);
    std::fflush(stdout);
  };
  std::fflush(stdout);  // what the test program has said
  std::string shown;
  {
    Terminal terminal(STDOUT_FILENO);
    render_to_stdout();
    shown = terminal.shown();
  }
  EXPECT_EQ(shown,
            "{\"text\":\"\\u009b31m\\u202e\"}\n"
            "{\"error\":\"TemplateError: \\u009b\\u202e\"}\n");
  ::testing::internal::CaptureStdout();
  render_to_stdout();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "{\"text\":\"\u009b31m\u202e\"}\n{\"error\":\"TemplateError: \u009b\u202e\"}\n");
}

TEST(RenderCommand, UsageAndMissingFiles) {
  char name[] = "render", option[] = "--template", file[] = "/nonexistent/t.jinja";
  char* none[] = {name};
  char* missing[] = {name, option, file};
  EXPECT_EQ(render_command(1, none), 2);
  EXPECT_EQ(render_command(3, missing), 1);
}

}  // namespace
}  // namespace rl
