// Checkpoints that all ranks write, each its part: the files of one rank. Ranks are threads.
#include "rl/optim/learner_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rl/checkpoint/hash_note.h"
#include "rl/comm/thread_links.h"
#include "rl/model/save.h"
#include "rl/optim/learner.h"
#include "rl/optim/shared_folder.h"
#include "tests/rl/model/fixtures.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

// A layout of ranks that save or load together.
struct SavingMesh {
  int ranks = 1;
  ZeroLevel zero = ZeroLevel::kNone;
  int shard_ranks = 0;
  int tensor = 1;
};

// Of several chunks of the norm, so that each rank has a home; GPT-2 stores its matrices the other
// way round.
ModelConfig config_of(const std::string& family) {
  auto config = ModelConfig::load(testing::model_folder(family));
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  config->hidden_size = 128;
  config->heads = 4;
  config->kv_heads = family == "gpt2" ? 4 : 2;
  config->head_dim = 32;
  config->intermediate_size = 520;
  return *config;
}

std::unique_ptr<Transformer> model_of(const ModelConfig& config, bool with_adapter) {
  auto model = std::make_unique<Transformer>(config, Parameters::random(config, 1),
                                             TransformerOptions{.threads = 1});
  if (!with_adapter) return model;
  auto adapter = LoraAdapter::create(config, {.rank = 64}, 7);
  EXPECT_TRUE(adapter.ok()) << adapter.status().to_string();
  EXPECT_TRUE(model->add_adapter("trained", std::move(*adapter)).ok());
  EXPECT_TRUE(model->use_adapter("trained").ok());
  return model;
}

// Does this on every rank of the mesh.
void on_all_ranks(const ModelConfig& config, bool with_adapter, const SavingMesh& mesh,
                  const std::function<void(Learner&, int)>& work) {
  auto links = make_thread_links(mesh.ranks);
  const int teams = mesh.ranks / mesh.tensor;
  std::vector<std::unique_ptr<Communicator>> of_teams(static_cast<std::size_t>(mesh.ranks));
  for (int team = 0; mesh.tensor > 1 && team < teams; ++team) {
    auto of_team = make_thread_links(mesh.tensor);
    for (int position = 0; position < mesh.tensor; ++position)
      of_teams[static_cast<std::size_t>(position * teams + team)] =
          std::make_unique<Communicator>(std::move(of_team[static_cast<std::size_t>(position)]));
  }
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < links.size(); ++rank) {
    threads.emplace_back([&, rank] {
      LearnerOptions options;
      options.zero = mesh.zero;
      options.shard_ranks = mesh.shard_ranks;
      options.sharing = {mesh.tensor, PassCut::kOutputs};
      Learner learner(
          model_of(config, with_adapter),
          {std::make_unique<Communicator>(std::move(links[rank])), std::move(of_teams[rank])},
          options);
      work(learner, static_cast<int>(rank));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One rank, whose moments are no zeros.
void save_alone(const ModelConfig& config, bool with_adapter, const fs::path& folder) {
  on_all_ranks(config, with_adapter, {}, [&](Learner& learner, int) {
    float next = 0.0F;
    for (const OptimizerState& state : learner.optimizer_state())
      for (float& value : state.values) value = next += 0.25F;
    const auto saved = learner.save(folder);
    ASSERT_TRUE(saved.ok()) << saved.status().to_string();
  });
}

std::vector<std::pair<std::string, std::string>> files_below(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || is_hash_note(entry.path())) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files.emplace_back(fs::relative(entry.path(), folder).string(),
                       std::string(std::istreambuf_iterator<char>(file), {}));
  }
  std::ranges::sort(files);
  return files;
}

const std::vector<SavingMesh> kMeshes = {
    {.ranks = 2, .zero = ZeroLevel::kMoments},
    {.ranks = 3, .zero = ZeroLevel::kGradients},
    {.ranks = 4, .zero = ZeroLevel::kWeights},
    {.ranks = 4, .zero = ZeroLevel::kWeights, .shard_ranks = 2},
    {.ranks = 2, .zero = ZeroLevel::kNone, .tensor = 2},
    {.ranks = 4, .zero = ZeroLevel::kWeights, .tensor = 2}};

TEST(LearnerPart, FilesOfAllRanksAreThoseOfOne) {
  for (const std::string family : {"qwen2", "gpt2"}) {
    for (const bool with_adapter : {false, true}) {
      const support::TemporaryFolder folder;
      const ModelConfig config = config_of(family);
      save_alone(config, with_adapter, folder.file("alone"));
      const auto expected = files_below(folder.file("alone"));
      ASSERT_GE(expected.size(), 4u);
      if (!with_adapter) {  // by tensors instead of ranges
        ASSERT_TRUE(
            save_model_folder(config, Parameters::random(config, 1), folder.file("whole")).ok());
        for (const auto& [name, content] : files_below(folder.file("whole")))
          EXPECT_TRUE(std::ranges::count(expected, std::pair(std::string(kModelFolder) + "/" + name,
                                                             content)) == 1)
              << name;
      }
      for (std::size_t i = 0; i < 2 * kMeshes.size(); ++i) {
        const SavingMesh& mesh = kMeshes[i / 2];
        const bool from_copy = i % 2 == 1;
        SCOPED_TRACE(family + (with_adapter ? ", an adapter, " : ", ") +
                     std::to_string(mesh.ranks) + " ranks, ZeRO " +
                     std::to_string(static_cast<int>(mesh.zero)) + ", teams of " +
                     std::to_string(mesh.tensor) + (from_copy ? ", a copy" : ""));
        const fs::path into = folder.file(std::to_string(i));
        on_all_ranks(config, with_adapter, mesh, [&](Learner& learner, int rank) {
          const auto loaded = learner.load(folder.file("alone"));
          ASSERT_TRUE(loaded.ok()) << loaded.to_string();
          const auto in_parts = learner.agree_on_parts(into.parent_path());
          ASSERT_TRUE(in_parts.ok()) << in_parts.status().to_string();
          EXPECT_TRUE(*in_parts);
          std::unique_ptr<LearnerSnapshot> copy;
          if (from_copy) {
            learner.snapshot(copy);
            // What is learned later is not of the copy.
            for (const OptimizerState& state : learner.optimizer_state())
              std::ranges::fill(state.values, 1.0F);
          }
          const auto saved = from_copy ? copy->write(into) : learner.save(into);
          ASSERT_TRUE(saved.ok()) << saved.status().to_string();
          EXPECT_EQ(saved->empty(), rank != 0);
        });
        EXPECT_TRUE(files_below(into) == expected);
      }
    }
  }
}

TEST(LearnerPart, RanksThatDoNotSeeTheFolderLeaveTheFilesToTheFirst) {
  const support::TemporaryFolder folder;
  const ModelConfig config = config_of("qwen2");
  save_alone(config, false, folder.file("alone"));
  on_all_ranks(config, false, {.ranks = 2, .zero = ZeroLevel::kWeights},
               [&](Learner& learner, int rank) {
                 ASSERT_TRUE(learner.load(folder.file("alone")).ok());
                 // As where another machine has no such folder.
                 const bool is_first = rank == 0;
                 const auto in_parts =
                     learner.agree_on_parts(is_first ? folder.file("") : folder.file("elsewhere"));
                 ASSERT_TRUE(in_parts.ok()) << in_parts.status().to_string();
                 EXPECT_FALSE(*in_parts);
                 ASSERT_TRUE(learner.collect_state().ok());
                 if (is_first) {
                   ASSERT_TRUE(learner.save(folder.file("first")).ok());
                 }
               });
  EXPECT_TRUE(files_below(folder.file("first")) == files_below(folder.file("alone")));
  for (const auto& entry : fs::directory_iterator(folder.file("")))
    EXPECT_TRUE(entry.is_directory()) << entry.path() << ": what ranks looked for is gone";
}

TEST(LearnerPart, AFailureNamesTheRankAndTheFile) {
  const support::TemporaryFolder folder;
  const ModelConfig config = config_of("qwen2");
  const fs::path into = folder.file("into");
  fs::create_directories(into);
  std::ofstream(into / kMomentsFile) << std::string(100'000'000, 'x');
  on_all_ranks(
      config, false, {.ranks = 2, .zero = ZeroLevel::kMoments}, [&](Learner& learner, int rank) {
        const auto in_parts = learner.agree_on_parts(folder.file(""));
        ASSERT_TRUE(in_parts.ok() && *in_parts);
        const auto saved = learner.save(into);
        ASSERT_FALSE(saved.ok());
        const std::string& message = saved.status().message();
        EXPECT_NE(message.find("rank " + std::to_string(rank)), std::string::npos) << message;
        EXPECT_NE(message.find(kMomentsFile), std::string::npos) << message;
      });
}

}  // namespace
}  // namespace rl
