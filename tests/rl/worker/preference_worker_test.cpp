// Preferences: numbers by hand and from the formulas that TRL has, one worker and two, references,
// and that responses are told apart.
#include "rl/worker/preference_worker.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <map>
#include <thread>

#include "rl/comm/gloo_communicator.h"
#include "rl/comm/thread_links.h"
#include "rl/config/key_table.h"
#include "rl/metrics/step_metrics.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

struct Example {
  Ids prompt, chosen, rejected;
};

const std::vector<Example> kExamples = {{{2, 5, 6, 1, 3}, {7, 8, 1}, {9, 1}},
                                        {{2, 10, 1, 3}, {11, 1}, {12, 13, 14, 1}},
                                        {{2, 15, 16, 1, 3}, {17, 18, 1}, {18, 17, 1}},
                                        {{2, 7, 1, 3}, {8, 1}, {6, 1}}};

PreferenceBatch pairs(std::size_t first = 0, std::size_t last = kExamples.size()) {
  PreferenceBatch batch;
  for (std::size_t i = first; i < last; ++i)
    batch.append_pair({.prompt = kExamples[i].prompt,
                       .chosen = kExamples[i].chosen,
                       .rejected = kExamples[i].rejected,
                       .margin = 0.5 * static_cast<double>(i),
                       .wanted = true});
  return batch;
}

// Each example's chosen response, wanted, and its rejected one, unwanted.
PreferenceBatch singles(std::size_t first = 0, std::size_t last = 2 * kExamples.size()) {
  PreferenceBatch batch;
  for (std::size_t i = first; i < last; ++i) {
    const Example& mine = kExamples[i / 2];
    const Example& other = kExamples[(i / 2 + 1) % kExamples.size()];
    batch.append_single(mine.prompt, i % 2 == 0 ? mine.chosen : mine.rejected, i % 2 == 0,
                        other.chosen);
  }
  return batch;
}

PreferenceObjective objective(PreferenceLossKind loss) {
  PreferenceObjective objective;
  objective.loss = loss;
  return objective;
}

constexpr PreferenceLossKind kAll[] = {
    PreferenceLossKind::kSigmoid, PreferenceLossKind::kIpo,         PreferenceLossKind::kHinge,
    PreferenceLossKind::kSppo,    PreferenceLossKind::kOrpo,        PreferenceLossKind::kSimpo,
    PreferenceLossKind::kKto,     PreferenceLossKind::kBradleyTerry};

class PreferenceWorkerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("starling-preference-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ASSERT_TRUE(
        make_toy_model(folder_, {.layers = 2, .hidden_size = 32, .intermediate_size = 64}).ok());
    ASSERT_TRUE(make_toy_model(folder_ / "other",
                               {.layers = 1, .hidden_size = 32, .intermediate_size = 32, .seed = 7})
                    .ok());
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static PreferenceWorkerOptions options(const PreferenceObjective& objective) {
    PreferenceWorkerOptions options;
    options.model = folder_;
    options.objective = objective;
    options.learner.adamw.weight_decay = 0.0F;
    options.learner.grad_norm_max = 0.0;
    return options;
  }

  static std::unique_ptr<PreferenceWorker> make(
      const PreferenceWorkerOptions& options,
      std::unique_ptr<Communicator> communicator = make_single_communicator()) {
    auto worker = PreferenceWorker::create(options, std::move(communicator));
    EXPECT_TRUE(worker.ok()) << worker.status().to_string();
    return std::move(*worker);
  }

  static PreferenceBatch batch_of(const PreferenceObjective& objective) {
    return objective.is_pairs() ? pairs() : singles();
  }
  static PreferenceTotals totals_of(const PreferenceBatch& batch) {
    return {batch.rows(), batch.wanted_count()};
  }

  static Metrics step(PreferenceWorker& worker, double rate, const MicroBatchLimits& limits = {}) {
    const PreferenceBatch batch = batch_of(objective_);
    const auto passes =
        plan_preferences({&batch, 1}, objective_.is_pairs(), std::vector{limits}).front();
    const auto metrics = worker.update(batch, passes, totals_of(batch), rate);
    EXPECT_TRUE(metrics.ok()) << metrics.status().to_string();
    return metrics.ok() ? *metrics : Metrics{};
  }

  // Sum of the log-probs of a response under a model, by itself.
  static double logprob(const Transformer& model, const Ids& prompt, const Ids& response) {
    PackedBatch packed;
    Ids all = prompt;
    all.insert(all.end(), response.begin(), response.end());
    packed.append(all, static_cast<std::int64_t>(prompt.size()));
    return model.token_logprobs(packed)->logprobs_N.sum().item<double>();
  }

  static inline fs::path folder_;
  static inline PreferenceObjective objective_;
};

// Before any step the policy is its reference: no loss of the DPO family sees a difference.
TEST_F(PreferenceWorkerTest, LossesBeginWhereTheFormulasSay) {
  const std::map<PreferenceLossKind, double> begins = {
      {PreferenceLossKind::kSigmoid, std::log(2.0)},
      {PreferenceLossKind::kIpo, 25.0},
      {PreferenceLossKind::kHinge, 1.0},
      {PreferenceLossKind::kSppo, 50.0},
      {PreferenceLossKind::kKto, 0.5}};
  for (const auto& [loss, expected] : begins) {
    objective_ = objective(loss);
    const Metrics metrics = step(*make(options(objective_)), 0.0);
    EXPECT_NEAR(metrics.at("loss"), expected, 1e-5);
    EXPECT_EQ(metrics.at("rewards/chosen"), 0.0);
    EXPECT_EQ(metrics.at("rewards/margins"), 0.0);
    EXPECT_GT(metrics.at("grad_norm"), 0.0);
  }
}

// TRL's formulas on log-probs that are worked out one sequence at a time: another model is the
// reference.
TEST_F(PreferenceWorkerTest, OneStepsLossIsTrlsFormula) {
  const auto frozen = Transformer::load(folder_ / "other");
  ASSERT_TRUE(frozen.ok()) << frozen.status().to_string();
  const double beta = 0.1;
  const auto log_sigmoid = [](double x) { return -std::log1p(std::exp(-x)); };
  std::map<PreferenceLossKind, double> expected;
  double averaged_ipo = 0.0, chosen_reward = 0.0, accuracies = 0.0;
  const auto policy = make(options(objective(PreferenceLossKind::kSigmoid)));
  const auto pairs_total = static_cast<double>(kExamples.size());
  for (const Example& example : kExamples) {
    const Transformer& model = policy->learner().model();
    const double chosen_tokens = static_cast<double>(example.chosen.size()),
                 rejected_tokens = static_cast<double>(example.rejected.size());
    const double chosen_logp = logprob(model, example.prompt, example.chosen),
                 rejected_logp = logprob(model, example.prompt, example.rejected);
    const double chosen = chosen_logp - logprob(**frozen, example.prompt, example.chosen),
                 rejected = rejected_logp - logprob(**frozen, example.prompt, example.rejected);
    const double delta = chosen - rejected;
    expected[PreferenceLossKind::kSigmoid] += -log_sigmoid(beta * delta) / pairs_total;
    expected[PreferenceLossKind::kHinge] += std::max(0.0, 1.0 - beta * delta) / pairs_total;
    expected[PreferenceLossKind::kIpo] += std::pow(delta - 1.0 / (2 * beta), 2) / pairs_total;
    expected[PreferenceLossKind::kSppo] +=
        (std::pow(chosen - 0.5 / beta, 2) + std::pow(rejected + 0.5 / beta, 2)) / pairs_total;
    averaged_ipo +=
        std::pow(chosen / chosen_tokens - rejected / rejected_tokens - 1.0 / (2 * beta), 2) /
        pairs_total;
    const double mean_chosen = chosen_logp / chosen_tokens,
                 mean_rejected = rejected_logp / rejected_tokens;
    expected[PreferenceLossKind::kSimpo] +=
        -log_sigmoid(beta * (mean_chosen - mean_rejected) - 1.0) / pairs_total;
    const double odds = mean_chosen - mean_rejected -
                        (std::log1p(-std::exp(mean_chosen)) - std::log1p(-std::exp(mean_rejected)));
    expected[PreferenceLossKind::kOrpo] += (-mean_chosen - beta * log_sigmoid(odds)) / pairs_total;
    chosen_reward += beta * chosen / pairs_total;
    accuracies += (delta > 0 ? 1.0 : 0.0) / pairs_total;
  }
  for (const auto& [loss, value] : expected) {
    objective_ = objective(loss);
    PreferenceWorkerOptions with_reference = options(objective_);
    with_reference.reference = folder_ / "other";
    const Metrics metrics = step(*make(with_reference), 0.0);
    EXPECT_NEAR(metrics.at("loss"), value, 2e-5 * std::max(1.0, value)) << static_cast<int>(loss);
    if (loss != PreferenceLossKind::kSigmoid) continue;
    EXPECT_NEAR(metrics.at("rewards/chosen"), chosen_reward, 1e-5);
    EXPECT_NEAR(metrics.at("rewards/accuracies"), accuracies, 1e-9);
  }
  objective_ = objective(PreferenceLossKind::kIpo);
  objective_.average_logprobs = true;  // TRL's reading of IPO
  PreferenceWorkerOptions with_reference = options(objective_);
  with_reference.reference = folder_ / "other";
  const Metrics averaged = step(*make(with_reference), 0.0);
  EXPECT_NEAR(averaged.at("loss"), averaged_ipo, 2e-5 * averaged_ipo);
  EXPECT_NEAR(averaged.at("rewards/chosen"), chosen_reward, 1e-5);  // of sums all the same
}

TEST_F(PreferenceWorkerTest, KtosDivergenceIsTheMeanOverMismatchedPairs) {
  const auto frozen = Transformer::load(folder_ / "other");
  const PreferenceBatch batch = singles();
  objective_ = objective(PreferenceLossKind::kKto);
  objective_.wanted_weight = 1.5;
  PreferenceWorkerOptions with_reference = options(objective_);
  with_reference.reference = folder_ / "other";
  const auto worker = make(with_reference);
  const Transformer& model = worker->learner().model();
  double kl = 0.0, loss = 0.0;
  const auto ids = [](std::span<const std::int32_t> row) { return Ids(row.begin(), row.end()); };
  for (std::int64_t i = 0; i < batch.rows(); ++i) {
    const Ids prompt = ids(batch.prompts.row(i)), other = ids(batch.others.row(i));
    kl += (logprob(model, prompt, other) - logprob(**frozen, prompt, other)) /
          static_cast<double>(batch.rows());
  }
  ASSERT_GT(kl, 0.0) << "nothing would be tested";
  for (std::int64_t i = 0; i < batch.rows(); ++i) {
    const Ids prompt = ids(batch.prompts.row(i)), response = ids(batch.responses.row(i));
    const bool wanted = batch.wanted[static_cast<std::size_t>(i)] != 0;
    const double lead =
        0.1 * (logprob(model, prompt, response) - logprob(**frozen, prompt, response) - kl) *
        (wanted ? 1.0 : -1.0);
    loss += (wanted ? 1.5 : 1.0) * (1.0 - 1.0 / (1.0 + std::exp(-lead))) /
            static_cast<double>(batch.rows());
  }
  const Metrics metrics = step(*worker, 0.0);
  EXPECT_NEAR(metrics.at("kl"), kl, 1e-4);
  EXPECT_NEAR(metrics.at("loss"), loss, 1e-5);
}

// One worker with everything, one pair at a time, and two workers: the same gradient.
TEST_F(PreferenceWorkerTest, TheGradientIsTheSameHoweverItIsCutUp) {
  for (const PreferenceLossKind loss : kAll) {
    objective_ = objective(loss);
    if (loss == PreferenceLossKind::kBradleyTerry) {
      objective_.use_margin = true;
      objective_.center_coefficient = 0.01;
    }
    PreferenceWorkerOptions how = options(objective_);
    how.learner.optimizer = OptimizerKind::kSgd;  // its step is the gradient
    how.learner.sgd.momentum = 0.0F;
    const auto before = make(how);
    const auto whole = make(how);
    const Metrics metrics = step(*whole, 1.0);
    const auto parts = make(how);
    step(*parts, 1.0, {.samples_max = 1});

    std::vector<std::unique_ptr<PreferenceWorker>> workers(2);
    std::vector<Metrics> reports(2);
    const std::shared_ptr<Rendezvous> rendezvous = make_local_rendezvous();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        auto group =
            make_gloo_communicator(rendezvous, {.rank = rank, .size = 2, .host = "127.0.0.1"});
        ASSERT_TRUE(group.ok()) << group.status().to_string();
        const PreferenceBatch mine = objective_.is_pairs()
                                         ? (rank == 0 ? pairs(0, 1) : pairs(1))
                                         : (rank == 0 ? singles(0, 3) : singles(3));
        auto& worker = workers[static_cast<std::size_t>(rank)];
        worker = make(how, std::move(*group));
        const auto report = worker->update(mine, {}, totals_of(batch_of(objective_)), 1.0);
        ASSERT_TRUE(report.ok()) << report.status().to_string();
        reports[static_cast<std::size_t>(rank)] = *report;
        EXPECT_TRUE(worker->check_weights().ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    const at::Tensor start = before->learner().model().parameters().arena();
    const auto gradient = [&](const PreferenceWorker& worker) {
      return worker.learner().model().parameters().arena() - start;
    };
    const at::Tensor expected = gradient(*whole);
    const double norm = expected.norm().item<double>();
    ASSERT_GT(norm, 0.0) << static_cast<int>(loss);
    EXPECT_LT((gradient(*parts) - expected).norm().item<double>(), 1e-5 * norm + 1e-6)
        << static_cast<int>(loss);
    EXPECT_LT((gradient(*workers[0]) - expected).norm().item<double>(), 1e-5 * norm + 1e-6)
        << static_cast<int>(loss);
    const Metrics together = sum_metrics(reports);
    for (const auto& [name, value] : metrics)
      EXPECT_NEAR(together.at(name), value, 1e-4 * std::max(1.0, std::abs(value)))
          << name << " of " << static_cast<int>(loss);
  }
}

// References, once over two workers or whole on each: the same bits. One worker has more pairs.
TEST_F(PreferenceWorkerTest, AReferenceThatIsKeptOnceSaysTheSame) {
  for (const PreferenceLossKind loss : {PreferenceLossKind::kSigmoid, PreferenceLossKind::kKto}) {
    objective_ = objective(loss);
    const auto metrics_of = [&](const FrozenSharding& sharding, ZeroLevel zero) {
      PreferenceWorkerOptions how = options(objective_);
      how.reference = folder_ / "other";
      how.reference_sharding = sharding;
      how.learner.zero = zero;
      std::vector<Metrics> reports(2);
      auto links = make_thread_links(2);
      std::vector<std::thread> threads;
      for (int rank = 0; rank < 2; ++rank) {
        threads.emplace_back([&, rank] {
          const auto at = static_cast<std::size_t>(rank);
          const auto worker = make(how, std::make_unique<Communicator>(std::move(links[at])));
          const bool is_pairs = objective_.is_pairs();
          const std::vector<PreferenceBatch> parts = is_pairs
                                                         ? std::vector{pairs(0, 1), pairs(1)}
                                                         : std::vector{singles(0, 3), singles(3)};
          const auto passes =
              plan_preferences(parts, is_pairs, std::vector(2, MicroBatchLimits{.samples_max = 1}));
          for (int step = 0; step < 2; ++step) {
            const auto report =
                worker->update(parts[at], passes[at], totals_of(batch_of(objective_)), 1e-2);
            ASSERT_TRUE(report.ok()) << report.status().to_string();
            reports[at] = *report;
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      return reports;
    };
    const std::vector<Metrics> whole = metrics_of({}, ZeroLevel::kNone);
    EXPECT_EQ(metrics_of({.shards = true}, ZeroLevel::kNone), whole) << static_cast<int>(loss);
    EXPECT_EQ(metrics_of({.shards = true}, ZeroLevel::kWeights), whole) << static_cast<int>(loss);
  }
}

// Steps leave the reference alone, whether it is a separate model or the base below an adapter.
TEST_F(PreferenceWorkerTest, TheReferenceStaysWhatItWas) {
  for (const bool with_adapter : {false, true}) {
    objective_ = objective(PreferenceLossKind::kSigmoid);
    PreferenceWorkerOptions how = options(objective_);
    if (with_adapter) how.adapter = AdapterOptions{.lora = {.rank = 4}, .folder = {}, .seed = 3};
    const auto worker = make(how);
    const double before = step(*worker, 3e-3).at("logps/chosen");
    for (int i = 0; i < 5; ++i) step(*worker, 3e-3);
    const Metrics after = step(*worker, 0.0);
    EXPECT_GT(after.at("rewards/margins"), 0.0) << with_adapter;
    // The reward is beta times how far the log-prob has come from where it began.
    EXPECT_NEAR(after.at("rewards/chosen"), 0.1 * (after.at("logps/chosen") - before), 1e-5)
        << with_adapter;
  }
}

// An adapter that training begins with belongs to the reference.
TEST_F(PreferenceWorkerTest, AnAdapterToBeginWithIsTheReferenceToo) {
  objective_ = objective(PreferenceLossKind::kSigmoid);
  PreferenceWorkerOptions how = options(objective_);
  how.adapter = AdapterOptions{.lora = {.rank = 4}, .folder = {}, .seed = 3};
  const auto first = make(how);
  for (int i = 0; i < 5; ++i) step(*first, 3e-3);
  ASSERT_TRUE(first->save(folder_ / "first").ok());
  how.adapter->folder = folder_ / "first" / kAdapterFolder;
  const auto second = make(how);
  const Metrics begins = step(*second, 3e-3);
  EXPECT_NEAR(begins.at("loss"), std::log(2.0), 1e-6);
  EXPECT_EQ(begins.at("rewards/chosen"), 0.0);
  EXPECT_GT(step(*second, 3e-3).at("rewards/margins"), 0.0);
}

TEST_F(PreferenceWorkerTest, TellsChosenFromRejected) {
  for (const PreferenceLossKind loss : kAll) {
    objective_ = objective(loss);
    if (loss == PreferenceLossKind::kSimpo) objective_.beta = 2.0;
    const auto worker = make(options(objective_));
    for (int i = 0; i < 40; ++i) step(*worker, 3e-3);
    const PreferenceBatch batch = batch_of(objective_);
    const auto learned = worker->evaluate(batch, {}, totals_of(batch), batch.rows());
    ASSERT_TRUE(learned.ok()) << learned.status().to_string();
    const bool is_reward_model = loss == PreferenceLossKind::kBradleyTerry;
    EXPECT_EQ(learned->at(is_reward_model ? "accuracy" : "rewards/accuracies"), 1.0)
        << static_cast<int>(loss);
    EXPECT_GT(learned->at(is_reward_model ? "margin" : "rewards/margins"), 0.0)
        << static_cast<int>(loss);
  }
}

// What tells each from its neighbour.
TEST_F(PreferenceWorkerTest, LossesDifferWhereTheyShould) {
  const auto trained = [](PreferenceObjective how, int steps, double rate) {
    objective_ = how;
    const auto worker = make(options(how));
    for (int i = 0; i < steps; ++i) step(*worker, rate);
    return step(*worker, 0.0);
  };
  // Hinge stops where the margin is reached: then there is no gradient. DPO goes on.
  PreferenceObjective hinge = objective(PreferenceLossKind::kHinge);
  hinge.beta = 1.0;
  EXPECT_EQ(trained(hinge, 60, 3e-3).at("grad_norm"), 0.0);
  PreferenceObjective sigmoid = hinge;
  sigmoid.loss = PreferenceLossKind::kSigmoid;
  EXPECT_GT(trained(sigmoid, 60, 3e-3).at("grad_norm"), 0.0);
  // IPO draws log-ratios to 1 / (2 beta) and no further: rewards lead by a half.
  PreferenceObjective ipo = hinge;
  ipo.loss = PreferenceLossKind::kIpo;
  EXPECT_NEAR(trained(ipo, 200, 3e-3).at("rewards/margins"), 0.5, 0.1);
  // SPPO draws each of them to its own half.
  PreferenceObjective sppo = hinge;
  sppo.loss = PreferenceLossKind::kSppo;
  const Metrics halves = trained(sppo, 200, 3e-3);
  EXPECT_NEAR(halves.at("rewards/chosen"), 0.5, 0.1);
  EXPECT_NEAR(halves.at("rewards/rejected"), -0.5, 0.1);
  // ORPO learns the chosen responses themselves, SimPO only that they lead.
  PreferenceObjective orpo = objective(PreferenceLossKind::kOrpo),
                      simpo = objective(PreferenceLossKind::kSimpo);
  simpo.beta = 2.0;
  const Metrics of_orpo = trained(orpo, 40, 3e-3);
  EXPECT_GT(of_orpo.at("logps/chosen"), trained(simpo, 40, 3e-3).at("logps/chosen"));
  EXPECT_NEAR(of_orpo.at("loss"), of_orpo.at("nll_loss") - 0.1 * of_orpo.at("log_odds_ratio"),
              1e-5);
  // With smoothed labels there is a lead that is too large.
  PreferenceObjective smoothed = sigmoid;
  smoothed.label_smoothing = 0.2;
  EXPECT_LT(trained(smoothed, 60, 3e-3).at("rewards/margins"),
            trained(sigmoid, 60, 3e-3).at("rewards/margins"));
  // A centred reward model keeps its rewards around 0.
  PreferenceObjective plain = objective(PreferenceLossKind::kBradleyTerry), centred = plain;
  centred.center_coefficient = 1.0;
  EXPECT_LT(std::abs(trained(centred, 40, 3e-3).at("mean_reward")), 0.1);
}

TEST_F(PreferenceWorkerTest, RefusesWhatDoesNotFit) {
  const auto worker = make(options(objective(PreferenceLossKind::kSigmoid)));
  EXPECT_EQ(worker->update(singles(), {}, {8, 4}, 1e-3).status().code(),
            runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(worker->update(pairs(), {}, {3, 0}, 1e-3).status().code(),
            runtime::ErrorCode::kInvalidArgument);
  PreferenceBatch damaged = pairs();
  damaged.margins.pop_back();
  EXPECT_EQ(worker->update(damaged, {}, {4, 0}, 1e-3).status().code(),
            runtime::ErrorCode::kInvalidArgument);
  PreferenceWorkerOptions adapter = options(objective(PreferenceLossKind::kBradleyTerry));
  adapter.adapter = AdapterOptions{};
  EXPECT_EQ(PreferenceWorker::create(adapter, make_single_communicator()).status().code(),
            runtime::ErrorCode::kUnimplemented);
}

TEST_F(PreferenceWorkerTest, KeysOfOtherLossesAreRefused) {
  const auto complaint = [](std::vector<std::string> overrides) {
    const auto config = Config::load({std::nullopt, std::move(overrides), find_key_table("dpo")});
    return config.ok() ? PreferenceObjective::from_config(*config).status().message()
                       : config.status().message();
  };
  EXPECT_EQ(complaint({"preference.loss=simpo", "preference.simpo_gamma=0.5"}), "");
  EXPECT_EQ(complaint({"preference.loss=ipo", "preference.simpo_gamma=0.5"}),
            "preference.simpo_gamma goes with preference.loss=simpo, not with ipo: leave it out");
  EXPECT_EQ(complaint({"preference.loss=ipo", "preference.reference_path=m"}), "");
  EXPECT_EQ(complaint({"preference.loss=orpo", "preference.reference_path=null"}), "");
  EXPECT_EQ(
      complaint({"preference.loss=orpo", "preference.reference_path=m"}),
      "preference.reference_path: preference.loss=orpo compares with no reference: leave it out");
}

// A step after save() and load() has the same bits as one without.
TEST_F(PreferenceWorkerTest, GoesOnFromWhatItSaved) {
  objective_ = objective(PreferenceLossKind::kSigmoid);
  const auto worker = make(options(objective_));
  for (int i = 0; i < 3; ++i) step(*worker, 1e-3);
  ASSERT_TRUE(worker->save(folder_ / "saved").ok());
  const auto resumed = make(options(objective_));
  ASSERT_TRUE(resumed->load(folder_ / "saved").ok());
  EXPECT_EQ(step(*worker, 1e-3), step(*resumed, 1e-3));
  EXPECT_EQ(worker->learner().weights_checksum(), resumed->learner().weights_checksum());
}

}  // namespace
}  // namespace rl
