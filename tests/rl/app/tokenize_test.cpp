#include "rl/app/tokenize.h"

#include <gtest/gtest.h>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct TokenizeOutcome {
  int exit_code;
  std::string out;
  std::string err;
};

// Runs a command with these arguments and this stdin.
TokenizeOutcome run_command(int (*command)(int, char**), std::vector<std::string> arguments,
                            const std::string& input) {
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  auto* old_in = std::cin.rdbuf(in.rdbuf());
  auto* old_out = std::cout.rdbuf(out.rdbuf());
  auto* old_err = std::cerr.rdbuf(err.rdbuf());
  std::cin.clear();
  const int exit_code = command(static_cast<int>(argv.size()), argv.data());
  std::cin.rdbuf(old_in);
  std::cout.rdbuf(old_out);
  std::cerr.rdbuf(old_err);
  return {exit_code, out.str(), err.str()};
}

const std::string kModel = STARLING_SOURCE_DIR "/tests/fixtures/tokenizers/llama2_bytefallback";

TokenizeOutcome tokenize(const std::string& input, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"tokenize", "--model", kModel};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_command(rl::tokenize_command, arguments, input);
}

TokenizeOutcome detokenize(const std::string& input, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"detokenize", "--model", kModel};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_command(rl::detokenize_command, arguments, input);
}

TEST(TokenizeCommand, LineByLineBothWays) {
  const TokenizeOutcome ids = tokenize("{\"text\": \"Hello, world!\"}\n\n{\"text\": \"\"}\n");
  EXPECT_EQ(ids.exit_code, 0) << ids.err;
  EXPECT_EQ(ids.out, "{\"ids\":[1,356,301,661,415,377,511,337,329,262]}\n{\"ids\":[1]}\n");
  EXPECT_EQ(tokenize("{\"text\": \"\"}\n", {"--no-special"}).out, "{\"ids\":[]}\n");
  EXPECT_EQ(detokenize("{\"ids\":[1,356,301,661,415,377,511,337,329,262]}", {"--skip-special"}).out,
            "{\"text\":\"Hello, world!\"}\n");
  EXPECT_EQ(detokenize("{\"ids\":[1]}").out, "{\"text\":\"<s>\"}\n");
}

TEST(TokenizeCommand, OffsetsAndLengths) {
  const std::string input = "{\"text\": \"na\u00efve!\"}\n";
  EXPECT_EQ(tokenize(input, {"--offsets", "characters", "--max-length", "3"}).out,
            "{\"ids\":[1,356,339],\"offsets\":[[0,0],[0,1],[0,1]]}\n");
  EXPECT_EQ(tokenize(input, {"--offsets", "bytes", "--max-length", "3", "--truncation-side", "left",
                             "--no-special"})
                .out.substr(0, 8),
            "{\"ids\":[");
  const TokenizeOutcome unpadded = tokenize(input, {"--padding", "longest"});
  EXPECT_EQ(unpadded.exit_code, 1);
  EXPECT_NE(unpadded.err.find("neither a padding nor an end-of-sequence token"), std::string::npos)
      << unpadded.err;
  EXPECT_NE(tokenize(input, {"--offsets", "words"}).exit_code, 0);
  EXPECT_NE(tokenize(input, {"--padding", "0"}).exit_code, 0);

  const std::string opt = STARLING_SOURCE_DIR "/tests/fixtures/tokenizer_layouts/opt";
  const auto with_opt = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"tokenize", "--model", opt};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_command(rl::tokenize_command, arguments, "{\"text\": \"ab\"}\n{\"text\": \"\"}\n")
        .out;
  };
  const std::string padded = with_opt({"--padding", "5", "--padding-side", "left"});
  EXPECT_NE(padded.find("{\"attention_mask\":[0,0,0,0,1],\"ids\":[1,1,1,1,2]}"), std::string::npos)
      << padded;
  EXPECT_NE(with_opt({"--pad-to-multiple-of", "4"})
                .find("{\"attention_mask\":[1,0,0,0],\"ids\":[2,1,1,1]}"),
            std::string::npos);
}

TEST(TokenizeCommand, BadLinesAreNumberedAndEndIt) {
  for (const char* bad : {"{", "[]", "{\"txt\": \"a\"}", "{\"text\": 3}", "{\"text\": \"\\ud800\"}",
                          "{\"text\": \"\xff\"}"}) {
    const TokenizeOutcome outcome =
        tokenize(std::string("{\"text\": \"\"}\n") + bad + "\n{\"text\": \"\"}\n");
    EXPECT_EQ(outcome.exit_code, 1) << bad;
    EXPECT_EQ(outcome.out, "{\"ids\":[1]}\n") << bad;
    EXPECT_EQ(outcome.err.rfind("error: stdin line 2: ", 0), 0u) << outcome.err;
  }
  for (const char* bad : {"{\"ids\": 3}", "{\"ids\": [-1]}", "{\"ids\": [1.5]}",
                          "{\"ids\": [99999]}", "{\"ids\": [1e30]}"}) {
    const TokenizeOutcome outcome = detokenize(bad);
    EXPECT_EQ(outcome.exit_code, 1) << bad;
    EXPECT_EQ(outcome.err.rfind("error: stdin line 1: ", 0), 0u) << outcome.err;
  }
}

TEST(TokenizeCommand, UsageAndMissingModels) {
  EXPECT_EQ(run_command(rl::tokenize_command, {"tokenize"}, "").exit_code, 2);
  EXPECT_EQ(
      run_command(rl::tokenize_command, {"tokenize", "--model", kModel, "--odd"}, "").exit_code, 2);
  const TokenizeOutcome help = run_command(rl::tokenize_command, {"tokenize", "--help"}, "");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.out.find("--model"), std::string::npos);
  const TokenizeOutcome missing =
      run_command(rl::detokenize_command, {"detokenize", "--model", "/no/such/model"}, "");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("/no/such/model"), std::string::npos);
}

}  // namespace
