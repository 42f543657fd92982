#include "rl/app/render.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "rl/app/command_line.h"
#include "rl/app/model_option.h"
#include "rl/data/tool_list.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/json.h"
#include "runtime/core/rest_of.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

struct RenderSource {
  std::map<std::string, std::string> templates;
  std::map<std::string, std::string> special_tokens;
};

Result<RenderSource> from_model(const ModelOption& source) {
  const auto path = source.locate(HubNeed::kTokenizer);
  if (!path.ok()) return path.status();
  const std::string& model = source.model;
  const Result<Tokenizer> tokenizer = Tokenizer::load(*path);
  if (!tokenizer.ok()) return tokenizer.status();
  if (tokenizer->chat_templates().empty())
    return runtime::not_found(model +
                              ": the model ships no chat template; give one with --template");
  return RenderSource{tokenizer->chat_templates(), tokenizer->special_token_texts()};
}

Result<RenderSource> from_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return runtime::errno_status(errno, "template " + file);
  RenderSource source{{{kDefaultTemplate, runtime::rest_of(in)}}, {}};
  if (in.bad()) return runtime::errno_status(errno, "template " + file);
  return source;
}

void write_line(std::ostream& out, const char* key, const std::string& value) {
  out << ordered_json{{key, value}}.dump(-1, ' ', false, ordered_json::error_handler_t::replace)
      << '\n';
}

}  // namespace

bool render_lines(const ChatTemplates& chat_template,
                  const std::map<std::string, std::string>& special_tokens, std::istream& in,
                  std::ostream& out) {
  bool all_read = true;
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const ordered_json row = parse_template_variables(line);
    if (!row.is_object()) {
      const std::string why = runtime::nests_deeper(line)
                                  ? ": nested deeper than " + std::to_string(runtime::kJsonDepthMax)
                                  : ": not a JSON object";
      write_line(out, "error", "stdin:" + std::to_string(number) + why);
      all_read = false;
      continue;
    }
    // What transformers always passes, then what the tokenizer knows, then the line itself.
    ordered_json variables = {{"messages", ordered_json::array()},
                              {"tools", nullptr},
                              {"documents", nullptr},
                              {"add_generation_prompt", false}};
    for (const auto& [name, text] : special_tokens) variables[name] = text;
    for (const auto& [name, value] : row.items()) variables[name] = value;
    Result<ordered_json> tools =
        read_tool_list(variables.at("tools"), "stdin:" + std::to_string(number) + ": 'tools'");
    if (tools.ok()) variables["tools"] = *tools;
    const Result<std::string> text =
        tools.ok() ? chat_template.render_chat(variables) : Result<std::string>(tools.status());
    if (text.ok()) {
      write_line(out, "text", *text);
    } else {
      write_line(out, "error", text.status().message());
    }
  }
  return all_read;
}

int render_command(int argc, char** argv) {
  CLI::App app(
      "Chats as a model sees them: JSON lines {\"messages\":[...], \"tools\":..., "
      "\"add_generation_prompt\":...} in, {\"text\":...} or "
      "{\"error\":...} out.",
      "starling render");
  ModelOption model;
  std::string file;
  CLI::Option_group* source_options = app.add_option_group("source");
  model.add_to(app,
               "a model folder, tokenizer.json or .gguf file: its own template and special tokens",
               source_options);
  source_options->add_option("--template", file, "a file with a Jinja2 template");
  source_options->require_option(1);
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  const Result<RenderSource> source = file.empty() ? from_model(model) : from_file(file);
  if (!source.ok()) return fail(source.status());
  const Result<ChatTemplates> chat_template = ChatTemplates::parse(source->templates);
  if (!chat_template.ok())
    return fail(chat_template.status().with_context(file.empty() ? model.model : file));
  const bool all_read = render_lines(*chat_template, source->special_tokens, std::cin, std::cout);
  std::cout.flush();
  if (!std::cout) return fail(runtime::errno_status(errno, "writing to stdout"));
  return all_read ? 0 : fail(runtime::invalid_argument("some lines are not JSON objects"));
}

}  // namespace rl
