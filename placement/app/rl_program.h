// The commands of `starling` that are another program's: starling-rl, found next to it.
#pragma once

#include <string>

namespace placement {

struct RlCommand {
  const char* name;
  const char* help;         // for people; empty: it shares the line of the next one that has one
  bool has_config = false;  // of key=value, about which starling-config answers, too
};

/// In the order of --help. rl/app/commands.h has their functions.
inline constexpr RlCommand kRlCommands[] = {
    {"train", "Train a policy: --config FILE key=value ...", true},
    {"sft", "Learn from demonstrations: --config FILE key=value ...", true},
    {"dpo", "Learn from pairs of a chosen and a rejected response (DPO, IPO, ORPO, SimPO, ...)",
     true},
    {"kto", "Learn from responses that are wanted or not", true},
    {"rm", "Train a reward model on pairs", true},
    {"pipeline", "Stages in order, each with what the ones before it made: FILE"},
    {"generate", ""},
    {"score", "Sample from a model; log-probs of given tokens"},
    {"eval", "How many answers of a model are right; pass@k, majority votes"},
    {"reward", "Scores of given responses, and what was compared"},
    {"report", "A run as one HTML page: curves, samples, timings"},
    {"data", "Rows of data files: head, stats, convert"},
    {"tokenize", ""},
    {"detokenize", ""},
    {"render", "Text to ids and back; chat messages to text"},
    {"export", "A checkpoint or GGUF file as a Hugging Face folder"},
    {"inspect", "What a model is, what it takes, what of it is not supported"},
};

/// The lines of `starling --help` about them.
std::string rl_commands_text();

/// The name of the program that answers this command line; null: `starling` does.
const char* rl_program_of(int argc, const char* const* argv);

/// Becomes that program, which answers its own --help. Returns only if that fails, with the exit
/// code.
int run_rl_program(int argc, char** argv);

}  // namespace placement
