// `starling generate` and `starling score`, as a user runs them: arguments and standard input in,
// lines out.
#include "rl/app/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "rl/app/sampling_options.h"
#include "rl/app/score.h"
#include "rl/model/device.h"
#include "rl/tokenizer/tokenizer.h"
#include "tests/rl/model/fixtures.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

struct GenerateOutcome {
  int exit = 0;
  std::vector<std::string> lines;
  std::string errors;

  nlohmann::json json(std::size_t line) const { return nlohmann::json::parse(lines.at(line)); }
};

GenerateOutcome run(int (*command)(int, char**), std::vector<std::string> arguments,
                    const std::string& input = "") {
  arguments.insert(arguments.begin(), "command");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  std::istringstream in(input);
  std::ostringstream out;
  std::streambuf* const old_in = std::cin.rdbuf(in.rdbuf());
  std::streambuf* const old_out = std::cout.rdbuf(out.rdbuf());
  std::cin.clear();
  ::testing::internal::CaptureStderr();
  GenerateOutcome outcome;
  outcome.exit = command(static_cast<int>(argv.size()), argv.data());
  outcome.errors = ::testing::internal::GetCapturedStderr();
  std::cin.rdbuf(old_in);
  std::cout.rdbuf(old_out);
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) outcome.lines.push_back(line);
  return outcome;
}

std::string llama() { return (testing::fixtures() / "models" / "llama").string(); }

TEST(GenerateCommand, ContinuesIdsGreedilyByDefault) {
  const nlohmann::json reference =
      testing::read_json(testing::fixtures() / "models" / "llama" / "reference.json");
  std::string ids;
  for (int id : reference["input_ids"][0].get<std::vector<int>>())
    ids += (ids.empty() ? "" : ",") + std::to_string(id);
  const GenerateOutcome outcome =
      run(generate_command,
          {"--model", llama(), "--ids", ids, "--max-new-tokens", "24", "--ignore-eos", "--json"});
  EXPECT_EQ(outcome.exit, 0) << outcome.errors;
  ASSERT_EQ(outcome.lines.size(), 1U);
  EXPECT_EQ(outcome.json(0)["ids"], reference["greedy_row0"]);
  EXPECT_EQ(outcome.json(0)["prompt_ids"], reference["input_ids"][0]);
  EXPECT_EQ(outcome.json(0)["logprobs"].size(), 24U);
  EXPECT_EQ(outcome.json(0)["text"], "");  // the folder has no tokenizer
}

TEST(GenerateCommand, AListInBracketsIsOnePrompt) {
  const GenerateOutcome outcome = run(
      generate_command,
      {"--model", llama(), "--ids", "[1,5,6]", "--ids", "7,8", "--max-new-tokens", "1", "--json"});
  EXPECT_EQ(outcome.exit, 0) << outcome.errors;
  ASSERT_EQ(outcome.lines.size(), 2U);
  EXPECT_EQ(outcome.json(0)["prompt_ids"], nlohmann::json({1, 5, 6}));
  EXPECT_EQ(outcome.json(1)["prompt_ids"], nlohmann::json({7, 8}));
  const GenerateOutcome wrong = run(generate_command, {"--model", llama(), "--ids", "[1,5"});
  EXPECT_EQ(wrong.exit, 1);
  EXPECT_NE(wrong.errors.find("'[1,5' is not a list of token ids"), std::string::npos)
      << wrong.errors;
}

TEST(GenerateCommand, SaysWhereTheModelDoesNotReadARowsTools) {
  const GenerateOutcome outcome =
      run(generate_command, {"--model", llama(), "--max-new-tokens", "1"},
          R"({"ids": [5, 6], "tools": [{"name": "f"}]})"
          "\n");
  EXPECT_EQ(outcome.exit, 0) << outcome.errors;
  EXPECT_NE(outcome.errors.find("note: stdin:1: \"tools\" are not read: only \"messages\" and "
                                "\"chat\" go through the model's chat template"),
            std::string::npos)
      << outcome.errors;
}

TEST(GenerateCommand, ComputesByLibTorchWhereBitsMayDiffer) {
  const std::vector<std::string> arguments = {
      "--model", llama(),        "--ids",  "5,6,7,8",        "--max-new-tokens",
      "6",       "--ignore-eos", "--json", "--deterministic"};
  const auto with = [&](const std::string& deterministic) {
    std::vector<std::string> all = arguments;
    all.push_back(deterministic);
    const GenerateOutcome outcome = run(generate_command, all);
    EXPECT_EQ(outcome.exit, 0) << outcome.errors;
    return outcome.json(0);
  };
  const nlohmann::json near = with("false"), exact = with("true");
  EXPECT_EQ(near["ids"], exact["ids"]);
  EXPECT_NE(near["logprobs"], exact["logprobs"]);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_NEAR(near["logprobs"][i].get<double>(), exact["logprobs"][i].get<double>(), 1e-4);
}

TEST(GenerateCommand, SaysWhereItCannotCompute) {
  const GenerateOutcome unknown =
      run(generate_command, {"--model", llama(), "--ids", "5,6", "--device", "gpu"});
  EXPECT_EQ(unknown.exit, 1);
  EXPECT_NE(unknown.errors.find("device is 'gpu'; it can be cpu, cuda or cuda:NUMBER"),
            std::string::npos)
      << unknown.errors;
  const GenerateOutcome adapter =
      run(generate_command,
          {"--model", llama(), "--ids", "5,6", "--device", "cuda", "--adapter", "anywhere"});
  EXPECT_NE(adapter.errors.find("adapters are used on the CPU only"), std::string::npos)
      << adapter.errors;
  if (find_device("cuda").ok()) GTEST_SKIP() << "this machine has a CUDA device";
  const GenerateOutcome none =
      run(score_command, {"--model", llama(), "--device", "cuda"}, "{\"ids\":[5,6]}\n");
  EXPECT_EQ(none.exit, 1);
  EXPECT_NE(none.errors.find("device cuda: "), std::string::npos) << none.errors;
  EXPECT_NE(none.errors.find("take device cpu"), std::string::npos) << none.errors;
}

TEST(GenerateCommand, GeneratesWithWeightsInEightBits) {
  const std::vector<std::string> arguments = {
      "--model", llama(),        "--ids",  "5,6,7,8",  "--max-new-tokens",
      "1",       "--ignore-eos", "--json", "--weights"};
  const auto with = [&](const std::string& weights) {
    std::vector<std::string> all = arguments;
    all.push_back(weights);
    return run(generate_command, all);
  };
  const GenerateOutcome fp32 = with("fp32"), int8 = with("int8"), int4 = with("int4");
  ASSERT_EQ(fp32.exit, 0) << fp32.errors;
  ASSERT_EQ(int8.exit, 0) << int8.errors;
  const double exact = fp32.json(0)["logprobs"][0], rounded = int8.json(0)["logprobs"][0];
  EXPECT_NE(exact, rounded);
  EXPECT_NEAR(exact, rounded, 0.2);
  EXPECT_NE(int4.exit, 0);
  EXPECT_NE(int4.errors.find("int8"), std::string::npos) << int4.errors;  // says what there is
}

/// A copy of the fixture's folder, whose generation_config.json is `config`.
class LlamaWith {
 public:
  explicit LlamaWith(const std::string& config, const std::filesystem::path& tokenizer = {}) {
    for (const char* name : {"config.json", "model.safetensors"})
      std::filesystem::create_symlink(
          std::filesystem::canonical(std::filesystem::path(llama()) / name), folder_.file(name));
    std::ofstream(folder_.file("generation_config.json")) << config;
    if (!tokenizer.empty())
      std::filesystem::create_symlink(std::filesystem::canonical(tokenizer),
                                      folder_.file("tokenizer.json"));
  }
  std::string path() const { return folder_.path().string(); }

 private:
  support::TemporaryFolder folder_;
};

TEST(GenerateCommand, HonoursTheGenerationConfig) {
  const auto ids = [](const std::string& model, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"--model", model,          "--ids",
                                          "5,6,7,8", "--ignore-eos", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const GenerateOutcome outcome = run(generate_command, arguments);
    EXPECT_EQ(outcome.exit, 0) << outcome.errors;
    return outcome.exit == 0 ? outcome.json(0)["ids"].get<std::vector<int>>() : std::vector<int>();
  };
  const LlamaWith odd(
      R"({"do_sample": true, "temperature": 1.5, "top_k": 0, "max_new_tokens": 9, "odd_key": 1})");
  const std::string sampled = odd.path();
  EXPECT_EQ(ids(sampled).size(), 9U);
  EXPECT_EQ(ids(sampled), ids(llama(), {"--temperature", "1.5", "--max-new-tokens", "9"}));
  EXPECT_EQ(ids(sampled, {"--temperature", "0", "--max-new-tokens", "5"}),
            ids(llama(), {"--max-new-tokens", "5"}));  // what is given wins
  EXPECT_EQ(ids(sampled, {"--ignore-generation-config", "--max-new-tokens", "5"}),
            ids(llama(), {"--max-new-tokens", "5"}));
  EXPECT_NE(run(generate_command, {"--model", sampled, "--ids", "5", "--max-new-tokens", "1"})
                .errors.find("odd_key"),
            std::string::npos);
  const LlamaWith penalized(R"({"repetition_penalty": 30.0, "max_new_tokens": 12})");
  const std::vector<int> once = ids(penalized.path());
  EXPECT_EQ(std::set<int>(once.begin(), once.end()).size(), once.size());  // nothing comes twice
  const LlamaWith searched(R"({"num_beams": 4, "max_new_tokens": 9})");
  EXPECT_EQ(ids(searched.path()), ids(llama(), {"--beams", "4", "--max-new-tokens", "9"}));
  EXPECT_EQ(ids(searched.path(), {"--beams", "0"}), ids(llama(), {"--max-new-tokens", "9"}));
  const LlamaWith contrasted(R"({"no_repeat_ngram_size": 4})");
  const GenerateOutcome refused =
      run(generate_command, {"--model", contrasted.path(), "--ids", "5"});
  EXPECT_EQ(refused.exit, 1);
  EXPECT_NE(refused.errors.find("no_repeat_ngram_size is 4, which is not supported"),
            std::string::npos)
      << refused.errors;
}

TEST(GenerateCommand, SearchesWithBeams) {
  const GenerateOutcome outcome =
      run(generate_command,
          {"--model", llama(), "--ids", "5,6,7", "--beams", "3", "--n", "2", "--length-penalty",
           "0.5", "--early-stopping", "true", "--max-new-tokens", "6", "--json"});
  EXPECT_EQ(outcome.exit, 0) << outcome.errors;
  ASSERT_EQ(outcome.lines.size(), 2U);
  EXPECT_GE(outcome.json(0)["beam_score"].get<float>(), outcome.json(1)["beam_score"].get<float>());
  EXPECT_NE(outcome.json(0)["ids"], outcome.json(1)["ids"]);
}

TEST(GenerateCommand, PrintsTheLogprobsThatAreAskedFor) {
  const GenerateOutcome outcome = run(generate_command, {"--model",
                                                         llama(),
                                                         "--ids",
                                                         "5,6,7",
                                                         "--max-new-tokens",
                                                         "4",
                                                         "--ignore-eos",
                                                         "--json",
                                                         "--top-logprobs",
                                                         "2",
                                                         "--prompt-logprobs",
                                                         "--prompt-top-logprobs",
                                                         "3",
                                                         "--processed-logprobs",
                                                         "--logit-bias",
                                                         "9=100",
                                                         "--temperature",
                                                         "1",
                                                         "--bad-ids",
                                                         "8"});
  EXPECT_EQ(outcome.exit, 0) << outcome.errors;
  const nlohmann::json line = outcome.json(0);
  EXPECT_EQ(line["ids"], nlohmann::json({9, 9, 9, 9}));
  EXPECT_EQ(line["finish_reason"], "length");
  ASSERT_EQ(line["top_logprobs"].size(), 4U);
  EXPECT_EQ(line["top_logprobs"][0].size(), 2U);
  EXPECT_LT(line["logprobs"][0].get<float>(), -1.0F);
  EXPECT_NEAR(line["processed_logprobs"][0].get<float>(), 0.0F, 1e-5F);
  EXPECT_EQ(line["top_processed_logprobs"][0][0]["id"], 9);
  EXPECT_EQ(line["prompt_logprobs"].size(), 2U);
  EXPECT_EQ(line["prompt_top_logprobs"][1].size(), 3U);
  const GenerateOutcome best =
      run(generate_command, {"--model", llama(), "--ids", "5", "--max-new-tokens", "4",
                             "--temperature", "1", "--n", "2", "--best-of", "5", "--json"});
  EXPECT_EQ(best.lines.size(), 2U);
}

TEST(GenerateCommand, StopsAtAText) {
  const LlamaWith with_text(
      "{}", testing::fixtures() / "tokenizers" / "gpt2_bytelevel" / "tokenizer.json");
  const auto text = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "--model", with_text.path(), "--ids",         "5,6,7", "--max-new-tokens",
        "40",      "--ignore-eos",   "--temperature", "1",     "--seed",
        "4",       "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const GenerateOutcome outcome = run(generate_command, arguments);
    EXPECT_EQ(outcome.exit, 0) << outcome.errors;
    return outcome.json(0);
  };
  const std::string whole = text({})["text"];
  std::size_t at = 8;
  while (at + 2 < whole.size() && !(std::isalnum(static_cast<unsigned char>(whole[at])) != 0 &&
                                    std::isalnum(static_cast<unsigned char>(whole[at + 1])) != 0))
    ++at;
  const std::string stop = whole.substr(at, 2);
  const nlohmann::json cut = text({"--stop", stop});
  EXPECT_EQ(cut["text"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(cut["finish_reason"], "stop");
  EXPECT_EQ(cut["stop_string"], stop);
  EXPECT_EQ(text({"--stop", stop, "--keep-stop"})["text"],
            whole.substr(0, whole.find(stop)) + stop);
}

TEST(SamplingOptions, TakesABadWordAsItStandsInATextAndAtItsBeginning) {
  const auto tokenizer = Tokenizer::load(testing::fixtures() / "tokenizers" / "gpt2_bytelevel");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  SamplingOptionTexts texts;
  texts.bad_words = {"~", "the"};
  texts.bad_ids = {"5, 6"};
  texts.logit_biases = {"13=-2.5"};
  SamplingParams sampling;
  ASSERT_TRUE(texts.apply(*tokenizer, sampling).ok());
  const auto ids = [&](const char* text) { return *tokenizer->encode(text, false); };
  EXPECT_EQ(sampling.bad_words, (std::vector<std::vector<std::int32_t>>{
                                    {5, 6}, ids("~"), ids(" ~"), ids("the"), ids(" the")}));
  EXPECT_EQ(sampling.logit_bias, (std::vector<LogitBias>{{.id = 13, .bias = -2.5F}}));
}

TEST(GenerateCommand, AnswersJsonLinesInOrder) {
  const GenerateOutcome outcome = run(generate_command,
                                      {"--model", llama(), "--json", "--temperature", "1", "--seed",
                                       "5", "--n", "2", "--max-new-tokens", "4"},
                                      "{\"ids\":[1,2,3]}\n\n{\"ids\":[4]}\n");
  EXPECT_EQ(outcome.exit, 0) << outcome.errors;
  ASSERT_EQ(outcome.lines.size(), 4U);
  EXPECT_EQ(outcome.json(0)["prompt_ids"], nlohmann::json({1, 2, 3}));
  EXPECT_EQ(outcome.json(1)["prompt_ids"], nlohmann::json({1, 2, 3}));
  EXPECT_EQ(outcome.json(3)["prompt_ids"], nlohmann::json::array({4}));
  const GenerateOutcome again =
      run(generate_command, {"--model", llama(), "--json", "--temperature", "1", "--seed", "5",
                             "--ids", "4", "--max-new-tokens", "4"});
  EXPECT_EQ(again.lines.at(0), outcome.lines.at(2));
}

TEST(GenerateCommand, ServesTheGoodPromptsAndFailsForTheBadOne) {
  const GenerateOutcome outcome = run(generate_command, {"--model", llama(), "--json"},
                                      "{\"ids\":[1]}\n{\"ids\":[]}\n{\"ids\":[2]}\n");
  EXPECT_EQ(outcome.exit, 1);
  EXPECT_EQ(outcome.lines.size(), 2U);
  EXPECT_NE(outcome.errors.find("error: stdin:2: request: the prompt is empty"), std::string::npos)
      << outcome.errors;
}

TEST(GenerateCommand, NamesWhatIsWrong) {
  const auto expect = [](const GenerateOutcome& outcome, int exit, const std::string& words) {
    EXPECT_EQ(outcome.exit, exit);
    EXPECT_TRUE(outcome.lines.empty());
    EXPECT_TRUE(outcome.errors.starts_with("error: ")) << outcome.errors;
    EXPECT_NE(outcome.errors.find(words), std::string::npos) << outcome.errors;
  };
  expect(run(generate_command, {"--model", llama(), "--bogus"}), 2, "--bogus");
  expect(run(generate_command, {}), 2, "--model");
  expect(run(generate_command, {"--model", "/does/not/exist", "--ids", "1"}), 1, "/does/not/exist");
  expect(run(generate_command, {"--model", llama(), "--prompt", "no tokenizer here"}), 1,
         "tokenizer");
  expect(run(generate_command, {"--model", llama(), "--ids", "1,x"}), 1, "1,x");
  expect(run(generate_command, {"--model", llama(), "--ids", "1", "--top-p", "0"}), 1, "top_p");
  expect(run(generate_command, {"--model", llama(), "--ids", "1", "--logit-bias", "5"}), 1,
         "--logit-bias: '5' is not a token id and a number");
  expect(run(generate_command, {"--model", llama(), "--ids", "1", "--bad-ids", "a"}), 1,
         "--bad-ids");
  expect(run(generate_command, {"--model", llama(), "--ids", "1", "--stop", "x"}), 1,
         "--stop: the model has no tokenizer");
  expect(run(generate_command, {"--model", llama(), "--ids", "1", "--bad-word", "x"}), 1,
         "--bad-word: the model has no tokenizer");
  expect(run(generate_command, {"--model", llama(), "--ids", "1", "--early-stopping", "maybe"}), 2,
         "--early-stopping");
  expect(run(generate_command,
             {"--model", llama(), "--ids", "1", "--beams", "2", "--top-logprobs", "1"}),
         1, "top_logprobs");
  expect(run(generate_command, {"--model", llama()}, "{\"ids\":[1]}\n{\"promt\":\"x\"}\n"), 1,
         "stdin:2");
  expect(run(generate_command, {"--model", llama()}, "{\"ids\":[1]\n"), 1,
         "stdin:1: not a JSON object");
}

TEST(GenerateCommand, ChatsWithSmolLm2) {
  const auto gguf = testing::smollm2_gguf();
  if (!gguf)
    GTEST_SKIP() << "SmolLM2's GGUF file is not in the cache; .ci/fetch_wheels.sh model fetches it";
  const nlohmann::json reference =
      testing::read_json(testing::fixtures() / "smollm2" / "reference.json");
  std::string input;
  for (const nlohmann::json& row : reference)
    input += nlohmann::json{{"messages", row["messages"]}}.dump() + "\n";
  const GenerateOutcome outcome =
      run(generate_command, {"--model", gguf->string(), "--json", "--max-new-tokens", "35"}, input);
  EXPECT_EQ(outcome.exit, 0) << outcome.errors;
  ASSERT_EQ(outcome.lines.size(), reference.size());
  for (std::size_t i = 0; i < reference.size(); ++i) {
    EXPECT_EQ(outcome.json(i)["prompt_ids"], reference[i]["prompt_ids"]);
    EXPECT_EQ(outcome.json(i)["ids"], reference[i]["greedy_ids"]);
    EXPECT_EQ(outcome.json(i)["text"], reference[i]["greedy_text"]);
  }
}

TEST(ScoreCommand, GivesTheLogprobOfEachTokenAfterTheFirst) {
  const nlohmann::json reference =
      testing::read_json(testing::fixtures() / "models" / "llama" / "reference.json");
  const GenerateOutcome outcome =
      run(score_command, {"--model", llama()},
          nlohmann::json{{"ids", reference["input_ids"][0]}}.dump() + "\n{\"ids\":[7]}\n");
  EXPECT_EQ(outcome.exit, 0) << outcome.errors;
  ASSERT_EQ(outcome.lines.size(), 2U);
  const auto scores = outcome.json(0)["token_logprobs"].get<std::vector<float>>();
  const auto expected = reference["token_logprobs"][0].get<std::vector<float>>();
  ASSERT_EQ(scores.size(), expected.size());
  for (std::size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], expected[i], 1e-4);
  EXPECT_TRUE(outcome.json(1)["token_logprobs"].empty());
}

TEST(ScoreCommand, RefusesTextAndTooLongSequences) {
  const GenerateOutcome text = run(score_command, {"--model", llama()}, "{\"prompt\":\"x\"}\n");
  EXPECT_EQ(text.exit, 1);
  EXPECT_NE(text.errors.find("stdin:1"), std::string::npos);
  const std::vector<int> ids(129, 1);  // the context holds 128
  const GenerateOutcome longer =
      run(score_command, {"--model", llama()}, nlohmann::json{{"ids", ids}}.dump() + "\n");
  EXPECT_EQ(longer.exit, 1);
  EXPECT_NE(longer.errors.find("129 tokens"), std::string::npos) << longer.errors;
}

}  // namespace
}  // namespace rl
