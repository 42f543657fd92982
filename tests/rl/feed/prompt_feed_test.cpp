#include "rl/feed/prompt_feed.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "rl/run/rl/trainer_options.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

class PromptFeedTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("starling-feed-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ASSERT_TRUE(
        make_toy_model(folder_, {.layers = 1, .hidden_size = 16, .intermediate_size = 16}).ok());
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static Config config(std::vector<std::string> overrides = {}) {
    overrides.insert(overrides.begin(), {"data.dataset_name=toy", "data.toy.rows=10",
                                         "actor_rollout_ref.model.path=" + folder_.string()});
    auto config = Config::load({.file = std::nullopt, .overrides = overrides});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return std::move(*config);
  }

  static runtime::Result<std::unique_ptr<PromptFeed>> open(const Config& config,
                                                           std::int64_t batch = 4,
                                                           std::int64_t workers = 2) {
    const auto dataset = dataset_options(config, Split::kTrain);
    EXPECT_TRUE(dataset.ok()) << dataset.status().to_string();
    return PromptFeed::create(
        config, **dataset,
        {.model = folder_, .batch_prompts = batch, .mini_batch_prompts = 2, .workers = workers});
  }

  static inline fs::path folder_;
};

TEST_F(PromptFeedTest, CutsAStepOverTheWorkers) {
  auto feed = open(config());
  ASSERT_TRUE(feed.ok()) << feed.status().to_string();
  const auto prompts = (*feed)->next(1);
  ASSERT_TRUE(prompts.ok());
  ASSERT_EQ(prompts->batches.size(), 2u);
  EXPECT_EQ(prompts->batches[0].ids.rows(), 2);
  EXPECT_EQ(prompts->tasks[1].size(), 2u);
  EXPECT_EQ(prompts->tasks[1][0].data_source, "toy");
  EXPECT_EQ((*feed)->batches_per_epoch(), 2);
}

TEST_F(PromptFeedTest, OfSeveralTeachersARowHasTheOneOfItsKey) {
  const fs::path file = folder_ / "teachers.jsonl";
  const auto open_with = [&](const std::string& rows, const std::string& column) {
    std::ofstream(file) << rows;
    const Config read = config({"data.dataset_name=null", "data.train_files=" + file.string(),
                                "distillation.teacher_key=" + column});
    const auto dataset = dataset_options(read, Split::kTrain);
    EXPECT_TRUE(dataset.ok());
    return PromptFeed::create(read, **dataset,
                              {.model = folder_,
                               .batch_prompts = 2,
                               .mini_batch_prompts = 2,
                               .shuffle = false,
                               .teacher_column = column,
                               .teachers = {"a", "7"}});
  };
  for (const std::string column : {"data_source", "kind"}) {
    auto feed =
        open_with("{\"prompt\":\"ab\",\"answer\":\"b\",\"" + column +
                      "\":\"a\"}\n{\"prompt\":\"cd\",\"answer\":\"d\",\"" + column + "\":7}\n",
                  column);
    ASSERT_TRUE(feed.ok()) << feed.status().to_string();
    const auto prompts = (*feed)->next(1);
    ASSERT_TRUE(prompts.ok());
    EXPECT_EQ(prompts->tasks[0][0].teacher, "a");
    EXPECT_EQ(prompts->tasks[0][1].teacher, "7");
  }
  EXPECT_EQ((*open(config()))->next(1)->tasks[0][0].teacher, "") << "one teacher or none";
  auto feed =
      open_with("{\"prompt\":\"ab\",\"kind\":\"a\"}\n{\"prompt\":\"cd\",\"kind\":\"b\"}\n", "kind");
  EXPECT_NE(feed.status().message().find("teachers.jsonl:2: its 'kind' (distillation.teacher_key) "
                                         "is 'b', and there are teachers for a, 7"),
            std::string::npos)
      << feed.status().message();
  feed = open_with("{\"prompt\":\"ab\"}\n{\"prompt\":\"cd\"}\n", "kind");
  EXPECT_NE(feed.status().message().find(
                "teachers.jsonl:1: its 'kind' (distillation.teacher_key) is empty"),
            std::string::npos)
      << feed.status().message();
}

TEST_F(PromptFeedTest, SeedsDifferByPromptAndStepButNotByWorker) {
  auto two = open(config());
  auto one = open(config(), 4, 1);
  std::set<std::uint64_t> seen;
  for (std::int64_t step = 1; step <= 2; ++step) {
    const auto a = (*two)->next(step);
    const auto b = (*one)->next(step);
    std::map<std::int64_t, std::uint64_t> seeds;
    for (std::size_t w = 0; w < 2; ++w) {
      for (std::size_t i = 0; i < a->shards[w].prompts.size(); ++i)
        seeds[a->shards[w].prompts[i]] = a->batches[w].seeds[i];
    }
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(seeds.at(b->shards[0].prompts[i]), b->batches[0].seeds[i]);
      seen.insert(b->batches[0].seeds[i]);
    }
  }
  EXPECT_EQ(seen.size(), 8u);
}

TEST_F(PromptFeedTest, ResumesInTheMiddleOfAnEpoch) {
  auto through = open(config());
  ASSERT_TRUE((*through)->next(1).ok());
  const nlohmann::json position = (*through)->position();
  auto resumed = open(config());
  ASSERT_TRUE((*resumed)->resume(position).ok());
  for (std::int64_t step = 2; step <= 4; ++step) {
    const auto a = (*through)->next(step);
    const auto b = (*resumed)->next(step);
    EXPECT_EQ(a->batches[0].ids, b->batches[0].ids);
    EXPECT_EQ(a->epoch, b->epoch);
  }
  auto other = open(config({"data.toy.rows=11"}));
  EXPECT_EQ((*other)->resume(position).code(), runtime::ErrorCode::kInvalidArgument);
}

TEST_F(PromptFeedTest, APromptThatIsTooLongIsFoundAtTheStart) {
  const auto refused = open(config({"data.max_prompt_length=4"}));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("toy:"), std::string::npos)
      << refused.status().to_string();
  EXPECT_TRUE(open(config({"data.max_prompt_length=4", "data.truncation=left"})).ok());
}

TEST_F(PromptFeedTest, RowsSayWhatConversationsNeedToKnow) {
  const fs::path file = folder_ / "rows.jsonl";
  const std::string row =
      R"({"prompt": [{"role": "user", "content": "sort ba"}], "extra_info": {"index": 3, "tools_kwargs": {"t": {}}, "tool_selection": ["t"]}, "agent_name": ")";
  const auto feed = [&](const std::string& agent, bool conversations) {
    std::ofstream(file) << row + agent + "\"}\n";
    const Config of_file = config({"data.dataset_name=null", "data.train_files=" + file.string()});
    const auto dataset = dataset_options(of_file, Split::kTrain);
    EXPECT_TRUE(dataset.ok()) << dataset.status().to_string();
    PromptFeedOptions options{.model = folder_};
    options.conversations = conversations;
    return PromptFeed::create(of_file, **dataset, options);
  };
  const auto talks = feed("tool_agent", true);
  ASSERT_TRUE(talks.ok()) << talks.status().to_string();
  const auto prompts = (*talks)->next(1);
  ASSERT_TRUE(prompts.ok());
  EXPECT_EQ(
      prompts->batches[0].contexts,
      (std::vector<std::string>{
          R"({"messages":[{"role":"user","content":"sort ba"}],"tools_kwargs":{"t":{}},"tool_selection":["t"],"agent_name":"tool_agent"})"}));
  const auto silent = feed("single_turn_agent", false);
  ASSERT_TRUE(silent.ok()) << silent.status().to_string();
  EXPECT_TRUE((*silent)->next(1)->batches[0].contexts.empty());
  EXPECT_NE(feed("tool_agent", false).status().message().find("multi_turn.enable=true"),
            std::string::npos);
  EXPECT_EQ(feed("swe_agent", true).status().code(), runtime::ErrorCode::kUnimplemented);
}

TEST_F(PromptFeedTest, SaysWhenABatchIsLargerThanTheData) {
  const auto feed = open(config(), 11);
  ASSERT_FALSE(feed.ok());
  EXPECT_NE(feed.status().message().find("data.train_batch_size"), std::string::npos);
}

TEST_F(PromptFeedTest, DemonstrationsEndWithTheEndToken) {
  auto feed = open(config());
  const auto step = (*feed)->next_demonstrations();
  ASSERT_TRUE(step.ok()) << step.status().to_string();
  ASSERT_EQ(step->batches.size(), 2u);
  EXPECT_EQ(step->batches[0].responses.rows(), 2);
  EXPECT_EQ(step->batches[0].responses.row_size(0), 5);  // four letters and the end
  EXPECT_EQ(step->leaves.count, 0);
}

TEST_F(PromptFeedTest, TheLengthsOfDemonstrationsAreKnown) {
  const Config toy = config();
  const auto dataset = dataset_options(toy, Split::kTrain);
  ASSERT_TRUE(dataset.ok());
  const auto feed = PromptFeed::create(toy, **dataset, {.model = folder_, .demonstrations = true});
  ASSERT_TRUE(feed.ok()) << feed.status().to_string();
  const RowLengths& lengths = (*feed)->demonstration_lengths();
  EXPECT_EQ(lengths.items.size(), 10u);
  EXPECT_GT(lengths.longest, 5);
  EXPECT_EQ(lengths.longest, lengths.items.front());
  EXPECT_TRUE(lengths.all_seen());
}

TEST_F(PromptFeedTest, ADemonstrationThatTheModelCannotReadIsFoundAtTheStart) {
  const fs::path file = folder_ / "demonstrations.jsonl";
  std::ofstream(file) << "{\"prompt\": \"ab\", \"response\": \"az\"}\n";
  const Config of_file = config({"data.dataset_name=null", "data.train_files=" + file.string()});
  const auto dataset = dataset_options(of_file, Split::kTrain);
  ASSERT_TRUE(dataset.ok()) << dataset.status().to_string();
  const auto tokenizer = Tokenizer::load(folder_);
  ASSERT_TRUE(tokenizer.ok());
  const std::vector<std::int32_t> last = *tokenizer->encode("z", false);
  ASSERT_EQ(last.size(), 1u);
  ASSERT_GT(last.front(), tokenizer->encode("b", false)->front());
  PromptFeedOptions options{.model = folder_, .vocabulary = last.front()};
  ASSERT_TRUE(PromptFeed::create(of_file, **dataset, options).ok())
      << "its prompt has no such letter";
  options.demonstrations = true;
  const auto refused = PromptFeed::create(of_file, **dataset, options);
  EXPECT_EQ(refused.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find(file.string() + ":1: the response: token " +
                                            std::to_string(last.front()) + " ('z')"),
            std::string::npos)
      << refused.status().message();
}

TEST_F(PromptFeedTest, ADemonstrationBeyondTheModelsContextIsFoundAtTheStart) {
  const fs::path file = folder_ / "demonstrations.jsonl";
  std::ofstream(file) << R"({"prompt": "ab", "response": "ab"}
{"prompt": "ab", "response": "abababab"}
)";
  const Config of_file = config({"data.dataset_name=null", "data.train_files=" + file.string()});
  const auto dataset = dataset_options(of_file, Split::kTrain);
  ASSERT_TRUE(dataset.ok()) << dataset.status().to_string();
  PromptFeedOptions options{.model = folder_, .context = 8};
  EXPECT_TRUE(PromptFeed::create(of_file, **dataset, options).ok()) << "its prompts fit";
  options.demonstrations = true;
  const auto refused = PromptFeed::create(of_file, **dataset, options);
  EXPECT_EQ(refused.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find(file.string() + ":2: the prompt and its demonstration"),
            std::string::npos)
      << refused.status().message();
}

TEST_F(PromptFeedTest, AllGoesThroughEveryRowOnce) {
  auto feed = open(config());
  const auto rounds = (*feed)->all();
  ASSERT_TRUE(rounds.ok());
  std::int64_t rows = 0;
  for (const StepPrompts& prompts : *rounds) {
    for (const PromptBatch& batch : prompts.batches) rows += batch.ids.rows();
  }
  EXPECT_EQ(rows, 10);
}

TEST_F(PromptFeedTest, ToyIsAModelUnlessAFolderHasTheName) {
  const Config toy = config({"actor_rollout_ref.model.path=toy",
                             "trainer.default_local_dir=" + (folder_ / "run").string()});
  const auto made = resolve_model(toy, "actor_rollout_ref.model.path", 1);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_TRUE(fs::exists(*made / "model.safetensors"));
  EXPECT_TRUE(fs::exists(*made / "tokenizer.json"));
  const auto missing = resolve_model(config({"actor_rollout_ref.model.path=/no/such/model"}),
                                     "actor_rollout_ref.model.path", 1);
  EXPECT_EQ(missing.status().code(), runtime::ErrorCode::kNotFound);
  EXPECT_NE(missing.status().message().find("/no/such/model"), std::string::npos);
}

TEST_F(PromptFeedTest, TrainerOptionsNameTheKeyThatIsWrong) {
  const auto options = TrainerOptions::from_config(config({"trainer.default_local_dir=''"}));
  ASSERT_FALSE(options.ok());
  EXPECT_NE(options.status().message().find("trainer.default_local_dir"), std::string::npos);
  EXPECT_FALSE(TrainerOptions::from_config(config({"trainer.resume_mode=resume_path"})).ok());
  const auto good = TrainerOptions::from_config(config({"data.train_batch_size=4"}));
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->mini_batch_prompts, 4);  // verl's default of 256 is more than there is
  EXPECT_FALSE(good->validate_first);
}

}  // namespace
}  // namespace rl
