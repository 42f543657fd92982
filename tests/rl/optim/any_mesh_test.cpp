// Training of every family on drawn numbers of ranks, leaves and levels of ZeRO: the bits of one
// rank. Ranks are threads.
#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/model/arena_units.h"
#include "rl/model/pass_parts.h"
#include "rl/optim/learner.h"
#include "rl/worker/gradient_rounds.h"
#include "rl/worker/passes.h"
#include "tests/rl/model/fixtures.h"
#include "tests/rl/model/large_config.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 3;

struct Training {
  fs::path model = {};  // empty: testing::large_config(layers)
  std::int64_t layers = 2;
  std::uint64_t seed = 0;  // of the data
  int leaves = 1;
  bool adapter = false;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  bool long_passes = false;  // of rows for several ranks, some of them shared
  bool entropies = false;    // in the loss, and squared probabilities; of 163 tokens
  int passes = 2;            // of a leaf
  bool of_logits = false;    // the loss, instead of log-probs
};

struct Mesh {
  int ranks = 1;
  ZeroLevel zero = ZeroLevel::kNone;
  bool reshard_after_forward = true;
  int tensor = 1;  // ranks of a stage, that share each pass
  PassCut cut = PassCut::kOutputs;
  int shard_ranks = 0;  // see UnitWeightsOptions
  int stages = 1;
  int chunks = 1;  // of a stage

  int team() const { return tensor * stages; }
  int teams() const { return ranks / team(); }
};

struct Outcome {
  std::vector<std::vector<float>> trained;  // by rank
  std::vector<double> norms;
  std::int64_t most_weights = -1;  // elements that had memory at most on a rank
};

// Short sequences; now and then there are none.
PackedBatch leaf_of(const Training& run, int step, int leaf, const ModelConfig& model) {
  std::seed_seq seeds{run.seed, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(leaf)};
  std::mt19937 random(seeds);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  PackedBatch batch;
  const bool is_empty = leaf > 0 && draw(0, 9) == 0;
  const int sequences = is_empty          ? 0
                        : run.passes > 2  ? draw(run.passes - 2, run.passes + 1)
                        : run.long_passes ? draw(3, 5)
                                          : draw(1, 3);
  constexpr int kBeginning = 66;
  const int longest = static_cast<int>(std::min<std::int64_t>(model.max_position_embeddings, 90));
  for (int i = 0; i < sequences; ++i) {
    const int length = run.long_passes ? draw(longest - 20, longest) : draw(2, 9);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(length));
    for (std::int32_t& token : tokens) token = draw(0, static_cast<int>(model.vocab_size) - 1);
    if (run.long_passes && longest - 20 > kBeginning && leaf % 2 == 0 && i > 1)  // as before it
      std::copy_n(batch.ids.end() - (batch.cu_seqlens.back() - batch.cu_seqlens.rbegin()[1]),
                  kBeginning, tokens.begin());
    batch.append(tokens);
  }
  return batch;
}

// A leaf in passes: a sequence each, but for the last.
PackedBatch pass_of(const Training& run, int step, int leaf, int pass, const ModelConfig& model) {
  if (leaf >= run.leaves) return {};
  const PackedBatch all = leaf_of(run, step, leaf, model);
  PackedBatch part;
  for (std::int64_t i = 0; i < all.sequences(); ++i) {
    if (std::min<std::int64_t>(i, run.passes - 1) != pass) continue;
    const auto begin = static_cast<std::size_t>(all.cu_seqlens[static_cast<std::size_t>(i)]);
    const auto end = static_cast<std::size_t>(all.cu_seqlens[static_cast<std::size_t>(i) + 1]);
    part.append(std::span(all.ids).subspan(begin, end - begin));
  }
  return part;
}

std::unique_ptr<Transformer> load_base(const Training& run) {
  if (run.model.empty()) {
    ModelConfig config = testing::large_config(run.layers);
    if (run.entropies) config.vocab_size = 163;
    return std::make_unique<Transformer>(config, Parameters::random(config, 1),
                                         TransformerOptions{.threads = 1});
  }
  auto config = ModelConfig::load(run.model);
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  auto model = Transformer::load(*config, run.model, 1, {.threads = 1});
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return std::move(*model);
}

std::unique_ptr<Transformer> load(const Training& run) {
  std::unique_ptr<Transformer> model = load_base(run);
  if (!run.adapter) return model;
  auto adapter = LoraAdapter::create(model->config(), {.rank = 2, .dropout = 0.25}, 7);
  EXPECT_TRUE(adapter.ok()) << adapter.status().to_string();
  EXPECT_TRUE(model->add_adapter("trained", std::move(*adapter)).ok());
  EXPECT_TRUE(model->use_adapter("trained").ok());
  model->dropout_passes().seed(run.seed);
  return model;
}

// Steps of a training, from a checkpoint and into another where there are any.
struct Stretch {
  int first = 0;
  int last = kSteps;
  fs::path from = {};
  fs::path into = {};
};

LearnerOptions learner_options(const Training& run, const Mesh& mesh) {
  LearnerOptions options;
  options.optimizer = run.optimizer;
  options.sgd.momentum = 0.9F;
  options.zero = mesh.zero;
  options.reshard_after_forward = mesh.reshard_after_forward;
  options.shard_ranks = mesh.shard_ranks;
  options.sharing = {mesh.tensor, mesh.cut, mesh.stages, mesh.chunks};
  return options;
}

// Two numbers a row, each of the whole vocabulary.
runtime::Result<OfLogits> numbers_of(const PackedBatch&) {
  return OfLogits([](const at::Tensor& logits_RV, std::int64_t /*first*/) {
    return at::stack({at::log_softmax(logits_RV, 1).select(1, 0), (logits_RV / 2).logsumexp(1)}, 1);
  });
}

runtime::Result<at::Tensor> loss_of(const Training& run, const Outputs& outputs) {
  const TokenLogprobs& of = outputs.logprobs;
  if (run.of_logits) return outputs.of_logits_NK.sum() * -0.01;
  if (!run.entropies) return of.logprobs_N.sum() * -0.01;
  return ((of.entropy_N - of.logprobs_N) * of.squares_N).sum() * 0.01;
}

// One rank's passes of a step, a round of leaves after the other.
void make_passes(const Training& run, const Mesh& mesh, int rank, int step, Learner& learner) {
  const ModelConfig& model = learner.model().config();
  std::vector<GradientRound> rounds;
  std::vector<MicroBatch> passes;  // pass i of a round's leaf is row i
  for (int first = 0; first < run.leaves; first += mesh.ranks) {
    GradientRound& round = rounds.emplace_back();
    round.leaf = first + rank;
    round.passes = run.passes;
    for (int leaf = first; leaf < first + mesh.ranks; ++leaf) {
      const bool adds = leaf < run.leaves && leaf_of(run, step, leaf, model).sequences() > 0;
      round.adds.push_back(adds ? 1 : 0);
    }
    for (int pass = 0; pass < run.passes; ++pass) {
      const std::int64_t row = std::ssize(passes);
      passes.push_back({row, row + 1});
    }
  }
  LogprobOptions logprobs;
  if (run.entropies) logprobs = {.temperature = 0.7F, .with_entropy = true, .with_squares = true};
  const PassInput input{.pack =
                            [&](const MicroBatch& row) {
                              const int round = static_cast<int>(row.first) / run.passes;
                              return pass_of(run, step, round * mesh.ranks + rank,
                                             static_cast<int>(row.first) % run.passes, model);
                            },
                        .wanted = run.of_logits ? OutputOptions{.of_logits = numbers_of}
                                                : OutputOptions{.logprobs = logprobs}};
  Metrics metrics;
  const Passes runner(learner.model(), {});
  const runtime::Status learned = learn_in_rounds(
      learner, passes, rounds, input.wanted, [&](std::span<const MicroBatch> of_round, int turn) {
        return runner.learn(
            of_round, input,
            [&](const Outputs& outputs, const MicroBatch&, const PackedBatch& packed, Metrics&) {
              // Of one sequence in seven nothing is learned.
              return packed.ids.front() % 7 == 3 ? at::Tensor() : loss_of(run, outputs);
            },
            metrics, turn);
      });
  ASSERT_TRUE(learned.ok()) << learned.to_string();
}

using Communicators = std::vector<std::unique_ptr<Communicator>>;

// By rank: those that each is linked to, which have these ranks.
void link(Communicators& all, const std::vector<int>& ranks) {
  auto links = make_thread_links(static_cast<int>(ranks.size()));
  for (std::size_t i = 0; i < ranks.size(); ++i)
    all[static_cast<std::size_t>(ranks[i])] = std::make_unique<Communicator>(std::move(links[i]));
}

void link_stages(std::vector<std::unique_ptr<PipelineLinks>>& all, const std::vector<int>& ranks) {
  const auto size = static_cast<int>(ranks.size());
  auto stages = make_thread_links(size), losses = make_thread_links(size);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    auto links = std::make_unique<PipelineLinks>();
    links->stages = std::make_unique<PeerMessages>(std::move(stages[i]));
    links->losses = std::make_unique<PeerMessages>(std::move(losses[i]));
    all[static_cast<std::size_t>(ranks[i])] = std::move(links);
  }
}

std::vector<TrainingRanks> linked_ranks(const Mesh& mesh) {
  const auto size = static_cast<std::size_t>(mesh.ranks);
  Communicators all(size), teams(size), stages(size);
  std::vector<std::unique_ptr<PipelineLinks>> pipelines(size);
  std::vector<int> every(size);
  std::iota(every.begin(), every.end(), 0);
  link(all, every);
  for (int team = 0; mesh.team() > 1 && team < mesh.teams(); ++team) {
    std::vector<int> members;
    for (int position = 0; position < mesh.team(); ++position)
      members.push_back(position * mesh.teams() + team);
    link(teams, members);
    for (int stage = 0; mesh.tensor > 1 && mesh.stages > 1 && stage < mesh.stages; ++stage) {
      const auto first = members.begin() + stage * mesh.tensor;
      link(stages, {first, first + mesh.tensor});
    }
    if (mesh.tensor == 1) link_stages(pipelines, members);
  }
  std::vector<TrainingRanks> ranks;
  for (std::size_t rank = 0; rank < size; ++rank)
    ranks.emplace_back(std::move(all[rank]), std::move(teams[rank]), std::move(stages[rank]))
        .pipeline = std::move(pipelines[rank]);
  return ranks;
}

Outcome train_on(const Training& run, const Mesh& mesh, const Stretch& stretch = {}) {
  Outcome outcome;
  outcome.trained.resize(static_cast<std::size_t>(mesh.ranks));
  std::vector<TrainingRanks> ranks = linked_ranks(mesh);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < mesh.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      Learner learner(load(run), std::move(ranks[at]), learner_options(run, mesh));
      if (!stretch.from.empty()) {
        const runtime::Status loaded = learner.load(stretch.from);
        ASSERT_TRUE(loaded.ok()) << loaded.to_string();
      }
      for (int step = stretch.first; step < stretch.last; ++step) {
        make_passes(run, mesh, rank, step, learner);
        if (::testing::Test::HasFatalFailure()) return;
        const auto report = learner.apply(1e-2);
        ASSERT_TRUE(report.ok()) << report.status().to_string();
        if (rank == 0) outcome.norms.push_back(report->grad_norm);
      }
      EXPECT_TRUE(learner.check_equal_weights().ok());
      if (rank == 0) outcome.most_weights = learner.most_weights_there();
      if (!stretch.into.empty()) {
        ASSERT_TRUE(learner.collect_state().ok());
        if (rank == 0) {
          ASSERT_TRUE(learner.save(stretch.into).ok());
        }
      }
      const auto gathered = learner.gathered();
      ASSERT_TRUE(gathered.ok()) << gathered.status().to_string();
      const at::Tensor& arena = learner.model().trained_parameters().arena();
      outcome.trained[at].assign(arena.const_data_ptr<float>(),
                                 arena.const_data_ptr<float>() + arena.numel());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

// At ZeRO-3 no rank has memory for more of the model than two units, on whole pages.
void expect_two_units(const fs::path& folder, const Outcome& outcome) {
  const auto config = ModelConfig::load(folder);
  ASSERT_TRUE(config.ok());
  constexpr std::int64_t kPage = 1024;
  std::vector<std::int64_t> read;
  for (const ArenaUnit& unit : arena_units(*config, parameter_layout(*config)))
    read.push_back(unit.read.elements() + 2 * kPage * std::ssize(unit.read.ranges()));
  std::int64_t most = 0;
  for (std::size_t unit = 1; unit < read.size(); ++unit)
    most = std::max(most, read[unit - 1] + read[unit]);
  EXPECT_GE(outcome.most_weights, 0);
  EXPECT_LE(outcome.most_weights, most);
}

// One of the ways in which that many ranks may share a pass, with at least as many stages, or ranks
// without stages.
PassSharing drawn_sharing(const fs::path& folder, int ranks, PassSharing sharing, int drawn) {
  const auto config = ModelConfig::load(folder);
  EXPECT_TRUE(config.ok());
  std::vector<std::int64_t> possible;
  const bool draws_stages = sharing.stages > 1;
  std::int64_t& drawn_number = draws_stages ? sharing.stages : sharing.ranks;
  for (; drawn_number <= ranks; ++drawn_number)
    if (ranks % sharing.team() == 0 && check_pass_parts(*config, sharing).ok())
      possible.push_back(drawn_number);
  drawn_number = possible[static_cast<std::size_t>(drawn) % possible.size()];
  return sharing;
}

// A divisor of the ranks, or 0.
int drawn_shard(int ranks, int drawn) {
  std::vector<int> possible = {0};
  for (int shard = 1; shard <= ranks; ++shard)
    if (ranks % shard == 0) possible.push_back(shard);
  return possible[static_cast<std::size_t>(drawn) % possible.size()];
}

bool can_share(const fs::path& folder, const PassSharing& sharing) {
  const auto config = ModelConfig::load(folder);
  EXPECT_TRUE(config.ok());
  return check_pass_parts(*config, sharing).ok();
}

const char* text_of(PassCut cut) {
  switch (cut) {
    case PassCut::kOutputs: break;
    case PassCut::kRows: return " by rows";
    case PassCut::kRowsAndExperts: return " by rows and experts";
  }
  return " by outputs";
}

// Returns the mesh that was drawn, with teams of at least these that share passes, where they are
// given.
Mesh expect_same_bits(const fs::path& folder, std::uint64_t seed, bool long_passes,
                      std::optional<PassSharing> sharing = std::nullopt, int passes = 2) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  Training run{.model = folder, .seed = seed, .long_passes = long_passes, .passes = passes};
  run.leaves = draw(3, run.long_passes ? 4 : 8);
  run.adapter = draw(0, 2) == 0;
  run.optimizer = static_cast<OptimizerKind>(draw(0, 2));
  SCOPED_TRACE(folder.filename().string() + ", seed " + std::to_string(seed) + ", " +
               std::to_string(run.leaves) + " leaves" + (run.adapter ? ", an adapter" : "") +
               (run.long_passes ? ", long passes" : ""));
  run.of_logits = draw(0, 3) == 0;
  SCOPED_TRACE(run.of_logits ? "a loss of logits" : "a loss of log-probs");
  const Outcome one = train_on(run, {});
  EXPECT_EQ(one.norms.size(), static_cast<std::size_t>(kSteps));
  EXPECT_GT(one.norms.front(), 0.0);
  Mesh several{.ranks = run.long_passes ? 2 * draw(1, 2) : draw(2, 8),
               .zero = static_cast<ZeroLevel>(draw(0, 3)),
               .reshard_after_forward = draw(0, 2) > 0};
  if (sharing && sharing->stages > 1)
    several.ranks =
        static_cast<int>(sharing->team()) * draw(1, 8 / static_cast<int>(sharing->team()));
  const PassSharing least = sharing.value_or(PassSharing{.ranks = run.long_passes ? 2 : 1});
  const PassSharing drawn = drawn_sharing(folder, several.ranks, least, draw(0, 3));
  several.tensor = static_cast<int>(drawn.ranks);
  several.stages = static_cast<int>(drawn.stages);
  several.shard_ranks = drawn_shard(several.ranks, draw(0, 11));
  if (run.long_passes || draw(0, 4) == 0) several.cut = PassCut::kRows;
  if (sharing) several.cut = sharing->cut;
  SCOPED_TRACE(std::to_string(several.ranks) + " ranks, ZeRO " +
               std::to_string(static_cast<int>(several.zero)) + ", teams of " +
               std::to_string(several.stages) + " stages of " + std::to_string(several.tensor) +
               text_of(several.cut) + ", shards of " + std::to_string(several.shard_ranks));
  const Outcome all = train_on(run, several);
  EXPECT_EQ(all.norms, one.norms);
  if (several.zero == ZeroLevel::kWeights && several.reshard_after_forward)
    expect_two_units(folder, all);
  for (const std::vector<float>& trained : all.trained) EXPECT_TRUE(trained == one.trained[0]);
  return several;
}

TEST(AnyMesh, ACheckpointOfOneGoesOnWithAnother) {
  const support::TemporaryFolder folder;
  const auto cases = testing::model_cases();
  ASSERT_FALSE(cases.empty());
  int checked = 0;
  for (const fs::path& model : cases) {
    const std::string name = model.filename().string();
    if (name != "qwen2" && name != "mixtral" && name != "gpt2") continue;
    for (const bool adapter : {false, true}) {
      SCOPED_TRACE(name + (adapter ? ", an adapter" : ""));
      const Training run{.model = model, .seed = 3, .leaves = 4, .adapter = adapter};
      const Outcome whole = train_on(run, {});
      const fs::path saved = folder.file(name + (adapter ? "-adapter" : ""));
      (void)train_on(run, {.ranks = 3, .zero = ZeroLevel::kWeights}, {.last = 2, .into = saved});
      for (const Mesh& mesh : {Mesh{1, ZeroLevel::kNone}, Mesh{2, ZeroLevel::kMoments},
                               Mesh{4, ZeroLevel::kGradients}, Mesh{2, ZeroLevel::kWeights},
                               Mesh{.ranks = 4, .zero = ZeroLevel::kWeights, .shard_ranks = 2}}) {
        const Outcome rest = train_on(run, mesh, {.first = 2, .from = saved});
        EXPECT_EQ(rest.norms.back(), whole.norms.back());
        EXPECT_TRUE(rest.trained[0] == whole.trained[0])
            << mesh.ranks << " ranks, ZeRO " << static_cast<int>(mesh.zero);
      }
      ++checked;
    }
  }
  EXPECT_EQ(checked, 6);
}

// Groups that keep the weights once each, of a model of which every rank has a part, and a
// checkpoint of them.
TEST(AnyMesh, GroupsKeepTheWeightsOnceEach) {
  const support::TemporaryFolder folder;
  const Training run{.seed = 5, .leaves = 5};
  const Outcome one = train_on(run, {});
  ASSERT_GT(one.norms.front(), 0.0);
  for (const auto& [ranks, shard, tensor] :
       {std::array{4, 2, 1}, {6, 3, 1}, {6, 2, 1}, {4, 1, 1}, {4, 2, 2}, {8, 4, 2}}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks, shards of " + std::to_string(shard) +
                 ", tensor " + std::to_string(tensor));
    const Mesh mesh{
        .ranks = ranks, .zero = ZeroLevel::kWeights, .tensor = tensor, .shard_ranks = shard};
    const Outcome all = train_on(run, mesh);
    EXPECT_EQ(all.norms, one.norms);
    for (const std::vector<float>& trained : all.trained) EXPECT_TRUE(trained == one.trained[0]);
  }
  const Mesh mesh{.ranks = 4, .zero = ZeroLevel::kWeights, .shard_ranks = 2};
  const fs::path saved = folder.file("saved");
  (void)train_on(run, mesh, {.last = 2, .into = saved});
  for (const Mesh& other : {Mesh{}, mesh, Mesh{.ranks = 3, .zero = ZeroLevel::kWeights}}) {
    const Outcome rest = train_on(run, other, {.first = 2, .from = saved});
    EXPECT_EQ(rest.norms.back(), one.norms.back()) << other.ranks;
    EXPECT_TRUE(rest.trained[0] == one.trained[0]) << other.ranks;
  }
}

// Gradients of a softmax, of rows that no vector divides and of a team's stretches of rows.
TEST(AnyMesh, EntropiesOverAnOddVocabulary) {
  for (const bool long_passes : {false, true}) {
    const Training run{.seed = 9, .leaves = 4, .long_passes = long_passes, .entropies = true};
    const Outcome one = train_on(run, {});
    ASSERT_GT(one.norms.front(), 0.0);
    for (const Mesh& mesh : {Mesh{.ranks = 2, .tensor = 2},
                             {.ranks = 2, .tensor = 2, .cut = PassCut::kRows},
                             {.ranks = 2, .stages = 2},
                             {.ranks = 4, .tensor = 2, .stages = 2},
                             {.ranks = 4, .tensor = 2, .cut = PassCut::kRows, .stages = 2}}) {
      SCOPED_TRACE(std::to_string(mesh.stages) + " stages of " + std::to_string(mesh.tensor) +
                   text_of(mesh.cut));
      const Outcome all = train_on(run, mesh);
      EXPECT_EQ(all.norms, one.norms);
      for (const std::vector<float>& trained : all.trained) EXPECT_TRUE(trained == one.trained[0]);
    }
  }
}

// Teams of every kind, with several passes of a leaf in flight where they are pipelines.
const std::vector<Mesh>& teams() {
  static const std::vector<Mesh> all = {
      {.ranks = 2, .tensor = 2},
      {.ranks = 2, .tensor = 2, .cut = PassCut::kRows},
      {.ranks = 4, .zero = ZeroLevel::kWeights, .tensor = 2, .cut = PassCut::kRowsAndExperts},
      {.ranks = 2, .stages = 2},
      {.ranks = 4, .zero = ZeroLevel::kWeights, .stages = 2},
      {.ranks = 4, .tensor = 2, .stages = 2},
      {.ranks = 4, .zero = ZeroLevel::kWeights, .tensor = 2, .cut = PassCut::kRows, .stages = 2},
      {.ranks = 4, .tensor = 2, .cut = PassCut::kRowsAndExperts, .stages = 2},
  };
  return all;
}

// How many teams could be made.
int expect_same_bits_in_teams(const Training& run) {
  const Outcome one = train_on(run, {});
  EXPECT_GT(one.norms.front(), 0.0);
  int made = 0;
  for (const Mesh& mesh : teams()) {
    if (!can_share(run.model, {mesh.tensor, mesh.cut, mesh.stages})) continue;
    SCOPED_TRACE(run.model.filename().string() + ", " + std::to_string(mesh.stages) +
                 " stages of " + std::to_string(mesh.tensor) + text_of(mesh.cut));
    const Outcome all = train_on(run, mesh);
    EXPECT_EQ(all.norms, one.norms);
    for (const std::vector<float>& trained : all.trained) EXPECT_TRUE(trained == one.trained[0]);
    ++made;
  }
  return made;
}

// Of tied and of untied embeddings, and of mixtures: an adapter next to each of their experts.
TEST(AnyMesh, AdaptersAndLossesOfLogitsInTeamsOfEveryKind) {
  int made = 0;
  for (const fs::path& folder : testing::model_cases()) {
    const std::string name = folder.filename().string();
    if (name != "qwen2" && name != "mixtral" && name != "deepseek_v3" && name != "gpt2") continue;
    for (const bool long_passes : {false, true}) {
      Training run{.model = folder,
                   .seed = 11,
                   .leaves = 3,
                   .adapter = true,
                   .long_passes = long_passes,
                   .passes = long_passes ? 2 : 4};
      made += expect_same_bits_in_teams(run);
      run.adapter = false;
      run.of_logits = true;
      made += expect_same_bits_in_teams(run);
    }
  }
  EXPECT_GT(made, 60);
}

// Of matrices of which several ranks have parts, at every level and in teams of every kind; and a
// checkpoint of them.
TEST(AnyMesh, MuonsMatricesAreMadeOrthogonalOnOneRankEach) {
  const support::TemporaryFolder folder;
  const Training run{.seed = 11, .leaves = 5, .optimizer = OptimizerKind::kMuon};
  const Outcome one = train_on(run, {});
  ASSERT_GT(one.norms.front(), 0.0);
  const Training by_adamw{.seed = 11, .leaves = 5};
  EXPECT_FALSE(train_on(by_adamw, {}).trained[0] == one.trained[0]);
  int at = 0;
  for (const Mesh& mesh :
       {Mesh{.ranks = 2},
        {.ranks = 5},
        {.ranks = 3, .zero = ZeroLevel::kMoments},
        {.ranks = 4, .zero = ZeroLevel::kGradients},
        {.ranks = 3, .zero = ZeroLevel::kWeights},
        {.ranks = 2, .zero = ZeroLevel::kWeights, .reshard_after_forward = false},
        {.ranks = 6, .zero = ZeroLevel::kWeights, .shard_ranks = 2},
        {.ranks = 2, .tensor = 2},
        {.ranks = 4, .zero = ZeroLevel::kWeights, .tensor = 2, .shard_ranks = 2},
        {.ranks = 4, .tensor = 2, .cut = PassCut::kRows},
        {.ranks = 4, .stages = 2},
        {.ranks = 4, .zero = ZeroLevel::kWeights, .tensor = 2, .stages = 2}}) {
    SCOPED_TRACE(std::to_string(mesh.ranks) + " ranks, ZeRO " +
                 std::to_string(static_cast<int>(mesh.zero)) + ", shards of " +
                 std::to_string(mesh.shard_ranks) + ", " + std::to_string(mesh.stages) +
                 " stages of " + std::to_string(mesh.tensor) + text_of(mesh.cut));
    const Outcome all = train_on(run, mesh);
    EXPECT_EQ(all.norms, one.norms);
    for (const std::vector<float>& trained : all.trained) EXPECT_TRUE(trained == one.trained[0]);
    if (at++ % 3 != 0) continue;
    const fs::path saved = folder.file(std::to_string(at));
    (void)train_on(run, mesh, {.last = 2, .into = saved});
    const Outcome rest =
        train_on(run, {.ranks = 2, .zero = ZeroLevel::kMoments}, {.first = 2, .from = saved});
    EXPECT_EQ(rest.norms.back(), one.norms.back());
    EXPECT_TRUE(rest.trained[0] == one.trained[0]);
  }
}

TEST(AnyMesh, TrainsEveryFamilyToTheSameBits) {
  std::uint64_t seed = 0;
  int families = 0;
  int shared = 0;
  int by_rows = 0;
  int grouped = 0;
  int mixtures = 0;
  for (const fs::path& folder : testing::model_cases()) {
    ++families;
    for (int time = 0; time < 3; ++time) {
      const Mesh drawn = expect_same_bits(folder, ++seed, /*long_passes=*/time == 2);
      if (drawn.tensor > 1) ++(drawn.cut == PassCut::kRows ? by_rows : shared);
      const bool in_groups = drawn.shard_ranks > 0 && drawn.shard_ranks < drawn.ranks;
      if (in_groups && drawn.zero == ZeroLevel::kWeights) ++grouped;
    }
    if (!can_share(folder, {.ranks = 2, .cut = PassCut::kRowsAndExperts})) continue;
    (void)expect_same_bits(folder, ++seed, /*long_passes=*/true,
                           PassSharing{.ranks = 2, .cut = PassCut::kRowsAndExperts});
    ++mixtures;
  }
  EXPECT_GT(shared, 9);
  EXPECT_GT(by_rows, families);
  EXPECT_GT(grouped, 5);
  EXPECT_GT(families, 20);
  EXPECT_GT(mixtures, 2);
}

TEST(AnyMesh, PipelinesTrainEveryFamilyToTheSameBits) {
  std::uint64_t seed = 1000;
  int families = 0;
  int sharded = 0;
  for (const fs::path& folder : testing::model_cases()) {
    if (!can_share(folder, {.stages = 2})) continue;
    ++families;
    for (const bool long_passes : {false, true}) {
      const Mesh drawn = expect_same_bits(folder, ++seed, long_passes, PassSharing{.stages = 2});
      if (drawn.zero == ZeroLevel::kWeights) ++sharded;
    }
    (void)expect_same_bits(folder, ++seed, /*long_passes=*/false, PassSharing{.stages = 2},
                           /*passes=*/5);
  }
  EXPECT_GT(families, 20);
  EXPECT_GT(sharded, 2);
}

TEST(AnyMesh, StagesOfSeveralRanksTrainEveryFamilyToTheSameBits) {
  std::uint64_t seed = 2000;
  std::map<PassCut, int> families;
  for (const fs::path& folder : testing::model_cases()) {
    for (const PassCut cut : {PassCut::kOutputs, PassCut::kRows, PassCut::kRowsAndExperts}) {
      const PassSharing sharing{.ranks = 2, .cut = cut, .stages = 2};
      if (!can_share(folder, sharing)) continue;
      ++families[cut];
      const Mesh drawn =
          expect_same_bits(folder, ++seed, /*long_passes=*/cut != PassCut::kOutputs, sharing);
      EXPECT_GE(drawn.team(), 4);
    }
  }
  EXPECT_GT(families[PassCut::kOutputs], 15);
  EXPECT_GT(families[PassCut::kRows], 15);
  EXPECT_GT(families[PassCut::kRowsAndExperts], 2);
}

// In flight, in lockstep, with units that are gathered, and where a stage has several ranks.
TEST(AnyMesh, StagesOfSeveralChunksTrainToTheSameBits) {
  for (const int passes : {1, 5}) {
    const Training run{.layers = 7, .seed = 31, .leaves = 2, .passes = passes};
    const Outcome one = train_on(run, {});
    ASSERT_GT(one.norms.front(), 0.0);
    for (const Mesh& mesh : {Mesh{.ranks = 2, .stages = 2, .chunks = 2},
                             {.ranks = 2, .stages = 2, .chunks = 3},
                             {.ranks = 3, .stages = 3, .chunks = 2},
                             {.ranks = 2, .zero = ZeroLevel::kWeights, .stages = 2, .chunks = 2},
                             {.ranks = 4, .tensor = 2, .stages = 2, .chunks = 3},
                             {.ranks = 4,
                             .zero = ZeroLevel::kWeights,
                             .tensor = 2,
                             .cut = PassCut::kRows,
                             .stages = 2,
                             .chunks = 2}}) {
      SCOPED_TRACE(std::to_string(passes) + " passes, " + std::to_string(mesh.stages) +
                   " stages of " + std::to_string(mesh.tensor) + ", " +
                   std::to_string(mesh.chunks) + " chunks");
      const Outcome all = train_on(run, mesh);
      EXPECT_EQ(all.norms, one.norms);
      for (const std::vector<float>& trained : all.trained) EXPECT_TRUE(trained == one.trained[0]);
    }
  }
}

TEST(AnyMesh, AdaptersNextToChunksTrainToTheSameBits) {
  for (const int passes : {1, 4}) {
    const Training run{.layers = 5, .seed = 32, .leaves = 2, .adapter = true, .passes = passes};
    const Outcome one = train_on(run, {});
    ASSERT_GT(one.norms.front(), 0.0);
    for (const Mesh& mesh : {Mesh{.ranks = 2, .stages = 2, .chunks = 2},
                             {.ranks = 4, .tensor = 2, .stages = 2, .chunks = 2}}) {
      SCOPED_TRACE(std::to_string(passes) + " passes, stages of " + std::to_string(mesh.tensor));
      const Outcome all = train_on(run, mesh);
      EXPECT_EQ(all.norms, one.norms);
      for (const std::vector<float>& trained : all.trained) EXPECT_TRUE(trained == one.trained[0]);
    }
  }
}

// Whichever stage the rows are of.
TEST(AnyMesh, ALossThatFailsEndsThePassesOfAllStages) {
  const Training run{.layers = 3, .seed = 5, .leaves = 3, .passes = 4};
  const Mesh mesh{.ranks = 3, .stages = 3};
  for (int owner = 0; owner < mesh.ranks; ++owner) {
    SCOPED_TRACE(owner);
    std::vector<TrainingRanks> ranks = linked_ranks(mesh);
    std::vector<runtime::Status> ended(ranks.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      threads.emplace_back([&, rank] {
        Learner learner(load(run), std::move(ranks[rank]), learner_options(run, mesh));
        const PassInput input{.pack =
                                  [&](const MicroBatch& row) {
                                    return pass_of(run, 0, 0, static_cast<int>(row.first),
                                                   learner.model().config());
                                  },
                              .wanted = {.logprobs = LogprobOptions()}};
        int losses = 0;
        Metrics metrics;
        const std::vector<MicroBatch> passes = {{0, 1}, {1, 2}, {2, 3}, {3, 4}};
        ended[rank] = Passes(learner.model(), {})
                          .learn(
                              passes, input,
                              [&](const Outputs& outputs, const MicroBatch&, const PackedBatch&,
                                  Metrics&) -> runtime::Result<at::Tensor> {
                                if (++losses == 2) return runtime::invalid_argument("no such loss");
                                return outputs.logprobs.logprobs_N.sum();
                              },
                              metrics, owner);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t rank = 0; rank < ended.size(); ++rank) {
      const bool is_owner = static_cast<int>(rank) == owner;
      EXPECT_EQ(ended[rank].code(),
                is_owner ? runtime::ErrorCode::kInvalidArgument : runtime::ErrorCode::kUnavailable)
          << ended[rank].to_string();
    }
  }
}

// Of stages of one layer and of two, in teams side by side, and a checkpoint of them.
TEST(AnyMesh, PipelinesOfUnevenStages) {
  const support::TemporaryFolder folder;
  const Training run{.layers = 5, .seed = 5, .leaves = 5, .passes = 6};
  const Outcome one = train_on(run, {});
  ASSERT_GT(one.norms.front(), 0.0);
  for (const auto& [ranks, stages] : {std::array{2, 2}, {3, 3}, {6, 3}}) {
    for (const ZeroLevel zero : {ZeroLevel::kNone, ZeroLevel::kWeights}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(stages) + " stages, ZeRO " +
                   std::to_string(static_cast<int>(zero)));
      const Mesh mesh{.ranks = ranks, .zero = zero, .stages = stages};
      const fs::path saved = folder.file(std::to_string(ranks * 4 + static_cast<int>(zero)));
      (void)train_on(run, mesh, {.last = 2, .into = saved});
      const Outcome rest = train_on(run, {}, {.first = 2, .from = saved});
      EXPECT_EQ(rest.norms.back(), one.norms.back());
      const Outcome all = train_on(run, mesh);
      EXPECT_EQ(all.norms, one.norms);
      for (const std::vector<float>& trained : all.trained) EXPECT_TRUE(trained == one.trained[0]);
    }
  }
}

}  // namespace
}  // namespace rl
