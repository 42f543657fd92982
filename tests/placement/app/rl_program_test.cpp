#include "placement/app/rl_program.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace placement {
namespace {

/// The program that answers `starling WORDS`; "": starling itself.
std::string answers(std::vector<const char*> words) {
  words.insert(words.begin(), "starling");
  const char* program = rl_program_of(static_cast<int>(words.size()), words.data());
  return program ? program : "";
}

TEST(RlProgram, ConfigurationsAreAnsweredWithoutLibTorch) {
  EXPECT_EQ(answers({"train", "trainer.nnodes=2"}), "starling-rl");
  EXPECT_EQ(answers({"train", "trainer.nnodes=2", "--check"}), "starling-config");
  EXPECT_EQ(answers({"kto", "--config-schema"}), "starling-config");
  EXPECT_EQ(answers({"eval", "--check"}), "starling-rl") << "it has no keys to be asked about";
}

TEST(RlProgram, OtherCommandsAreStarlingsOwn) {
  EXPECT_EQ(answers({"status", "train"}), "");
  EXPECT_EQ(answers({"trains"}), "");
  EXPECT_EQ(answers({}), "");
}

TEST(RlProgram, HelpHasALineForCommandsThatShareOne) {
  const std::string text = rl_commands_text();
  EXPECT_NE(text.find("  rm                          Train a reward model on pairs\n"
                      "  pipeline                    Stages in order"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n  generate, score             Sample from a model"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\n  tokenize, detokenize, render  Text to ids"), std::string::npos)
      << "names that are too long keep two spaces from their help:\n"
      << text;
}

}  // namespace
}  // namespace placement
