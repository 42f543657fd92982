// `starling render`: what a model's chat template makes of conversations.
#pragma once

#include <istream>
#include <map>
#include <ostream>
#include <string>

#include "rl/template/chat_templates.h"

namespace rl {

/// argv[0] is the command's name. JSON lines {"messages":..., "tools":...,
/// "add_generation_prompt":...} on stdin, further keys are variables of the template; {"text":...}
/// or {"error":...} per line on stdout. That a template refuses a conversation is an answer. Exit
/// codes: 0 every line was rendered or refused, 1 a line or the model cannot be read (said on
/// stderr), 2 usage.
int render_command(int argc, char** argv);

/// The loop of render_command. `special_tokens` are variables that a line may override. False when
/// a line is no JSON object.
bool render_lines(const ChatTemplates& chat_template,
                  const std::map<std::string, std::string>& special_tokens, std::istream& in,
                  std::ostream& out);

}  // namespace rl
