#include "rl/run/rl/sample_store.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "rl/data/random.h"
#include "runtime/codec/codec.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr std::uint32_t kSamplesMagic = 0x53475232;  // "SGR2": groups of samples, format 2

struct SampleFile {
  std::uint32_t magic = kSamplesMagic;
  std::vector<SavedGroup> groups;

  auto fields() { return std::tie(magic, groups); }
};

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0.0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.empty() ? 0.0 : std::sqrt(squares / static_cast<double>(values.size()));
}

Result<ReplayOrder> parse_replay_order(const std::string& name) {
  if (name == "uniform") return ReplayOrder::kUniform;
  if (name == "variance") return ReplayOrder::kVariance;
  if (name == "newest") return ReplayOrder::kNewest;
  return runtime::invalid_argument("'" + name + "' is none of uniform, variance, newest");
}

Status check_group(const SavedGroup& group) {
  if (const Status valid = group.batch.validate(); !valid.ok()) return valid;
  const auto samples = static_cast<std::size_t>(group.batch.samples());
  const auto fits = [&](std::size_t size) { return size == 0 || size == samples; };
  const bool consistent = group.batch.prompts.rows() == 1 && group.scores.size() == samples &&
                          fits(group.baselines.size()) && fits(group.components.size());
  return consistent ? Status()
                    : runtime::invalid_argument("a group whose sizes do not fit together");
}

}  // namespace

Result<SampleStoreOptions> SampleStoreOptions::from_config(const Config& config) {
  ConfigReader read(config);
  SampleStoreOptions options;
  options.enabled = read.get_bool("sample_store.enable");
  options.replay_ratio = read.get_float("sample_store.replay_ratio");
  options.capacity = read.get_int("sample_store.capacity");
  options.age_max = read.get_int("sample_store.max_age");
  options.uses_max = read.get_int("sample_store.max_uses");
  const std::string order = read.get_string("sample_store.order");
  options.score_deviation_min = read.get_float("sample_store.min_score_std");
  options.score_min = read.find_float("sample_store.min_score");
  options.score_max = read.find_float("sample_store.max_score");
  if (!read.status().ok()) return read.status();
  const Result<ReplayOrder> parsed = parse_replay_order(order);
  if (!parsed.ok()) return parsed.status().with_context("sample_store.order");
  options.order = *parsed;
  if (options.score_min && options.score_max && *options.score_min > *options.score_max)
    return config.out_of_range("sample_store.min_score", "at most sample_store.max_score");
  return options;
}

bool SampleStore::keeps(const StoredGroup& group) const {
  const double mean = mean_of(group.scores);
  if (options_.score_min && mean < *options_.score_min) return false;
  if (options_.score_max && mean > *options_.score_max) return false;
  return !group.scores.empty() && deviation_of(group.scores) >= options_.score_deviation_min;
}

void SampleStore::add(std::vector<StoredGroup> groups) {
  for (StoredGroup& group : groups) {
    if (keeps(group)) groups_.push_back(std::move(group));
  }
  const auto surplus =
      static_cast<std::ptrdiff_t>(groups_.size()) - static_cast<std::ptrdiff_t>(options_.capacity);
  if (surplus > 0) groups_.erase(groups_.begin(), groups_.begin() + surplus);
}

std::vector<StoredGroup> SampleStore::draw(std::int64_t step, std::int64_t count,
                                           std::uint64_t seed) {
  std::erase_if(groups_, [&](const StoredGroup& group) {
    return step - group.step > options_.age_max || group.uses >= options_.uses_max;
  });
  // Each group's key; the largest are drawn. For weights it is u^(1/w) of Efraimidis and Spirakis
  // 2006, which draws without replacement.
  std::vector<std::pair<double, std::size_t>> keys;
  SplitMix random(seed);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const double uniform = static_cast<double>(random.next() >> 11) * 0x1.0p-53;
    double key = uniform;
    if (options_.order == ReplayOrder::kVariance) {
      const double weight = deviation_of(groups_[i].scores);
      key = weight > 0 ? std::log(uniform) / weight : -std::numeric_limits<double>::infinity();
    } else if (options_.order == ReplayOrder::kNewest) {
      key += static_cast<double>(groups_[i].step);
    }
    keys.emplace_back(key, i);
  }
  std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  });
  keys.resize(std::min(keys.size(), static_cast<std::size_t>(std::max<std::int64_t>(count, 0))));
  std::vector<StoredGroup> drawn;
  for (const auto& [key, index] : keys) {
    ++groups_[index].uses;
    drawn.push_back(groups_[index]);
  }
  return drawn;
}

std::int64_t SampleStore::forget(const runtime::ObjectRef<RolloutBatch>& batch) {
  return static_cast<std::int64_t>(
      std::erase_if(groups_, [&](const StoredGroup& group) { return group.batch == batch; }));
}

Metrics SampleStore::metrics(std::int64_t step) const {
  double age = 0.0;
  for (const StoredGroup& group : groups_) age += static_cast<double>(step - group.step);
  return {
      {"sample_store/size", static_cast<double>(groups_.size())},
      {"sample_store/age_mean", groups_.empty() ? 0.0 : age / static_cast<double>(groups_.size())}};
}

std::string encode_groups(const std::vector<SavedGroup>& groups) {
  const SampleFile file{.magic = kSamplesMagic, .groups = groups};
  runtime::Encoder encoder;
  runtime::encode_value(encoder, file);
  const runtime::Buffer bytes = encoder.to_buffer();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<std::vector<SavedGroup>> decode_groups(std::string_view bytes) {
  runtime::Decoder decoder(
      runtime::Buffer::copy_of(std::as_bytes(std::span(bytes.data(), bytes.size()))));
  Result<SampleFile> file = runtime::decode_all<SampleFile>(decoder);
  if (!file.ok()) return file.status().with_context("stored samples");
  if (file->magic != kSamplesMagic)
    return runtime::invalid_argument("stored samples: written by another version");
  for (const SavedGroup& group : file->groups) {
    if (const Status valid = check_group(group); !valid.ok())
      return valid.with_context("stored samples");
  }
  return std::move(file->groups);
}

}  // namespace rl
