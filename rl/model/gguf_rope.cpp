#include "rl/model/gguf_rope.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "rl/model/json_fields.h"
#include "rl/model/rope.h"
#include "rl/weights/gguf.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::Status;

constexpr double kSameTemperature = 1e-5;  // files have single precision

/// The keys PREFIXrope.*; the first problem is kept.
class RopeKeys {
 public:
  RopeKeys(const GgufFile& file, const std::string& prefix)
      : file_(file), prefix_(prefix + "rope.") {}

  bool has(const std::string& key) const { return file_.metadata(prefix_ + key) != nullptr; }

  double number(const std::string& key, double otherwise) {
    if (!has(key)) return otherwise;
    const auto value = file_.number(prefix_ + key);
    if (value.ok() && std::isfinite(*value)) return shortest_decimal(static_cast<float>(*value));
    fail(value.ok() ? runtime::invalid_argument(file_.name() + ": " + prefix_ + key +
                                                " is not a finite number")
                    : value.status());
    return otherwise;
  }

  std::string text(const std::string& key, const std::string& otherwise) {
    if (!has(key)) return otherwise;
    const auto value = file_.string(prefix_ + key);
    if (value.ok()) return std::string(value->substr(0, 60));
    fail(value.status());
    return otherwise;
  }

  /// kUnimplemented, where `supported` does not hold.
  void require(bool supported, const std::string& key, const std::string& value,
               const std::string& cure) {
    if (supported) return;
    fail(runtime::unimplemented(file_.name() + ": " + prefix_ + key + " = " + value +
                                " is not supported (" + cure + ")"));
  }

  const Status& status() const { return status_; }

 private:
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const GgufFile& file_;
  const std::string prefix_;
  Status status_;
};

std::string decimal(double value) { return json(value).dump(); }

/// What positions are divided by: 1 where the file says 0 or nothing.
double read_factor(RopeKeys& keys) {
  const std::string key = keys.has("scaling.factor") ? "scaling.factor" : "scale_linear";
  const double factor = keys.number(key, 0.0);
  keys.require(factor == 0.0 || factor >= 1.0, key, decimal(factor), "a factor from 1 up is");
  return factor == 0.0 ? 1.0 : factor;
}

json read_gguf_yarn(RopeKeys& keys, double factor, double temperature, std::int64_t positions) {
  json scaling = {{"rope_type", "yarn"}, {"factor", factor}};
  const double original = keys.number("scaling.original_context_length", 0.0);
  keys.require(original >= 0.0 && original == std::floor(original) && original < 1e9,
               "scaling.original_context_length", decimal(original), "a number of tokens is");
  scaling["original_max_position_embeddings"] =
      original > 0.0 ? static_cast<std::int64_t>(original) : positions;
  for (const auto& [key, name] : {std::pair("scaling.yarn_beta_fast", "beta_fast"),
                                  {"scaling.yarn_beta_slow", "beta_slow"}}) {
    if (!keys.has(key)) continue;
    const double beta = keys.number(key, 1.0);
    keys.require(beta > 0.0, key, decimal(beta), "a number above 0 is");
    scaling[name] = beta;
  }
  // Below 0 means that the file does not say.
  const double extrapolation = keys.number("scaling.yarn_ext_factor", 1.0);
  keys.require(extrapolation < 0.0 || extrapolation == 1.0, "scaling.yarn_ext_factor",
               decimal(extrapolation), "1 is");
  // Converters write the whole temperature there, llama.cpp takes a part of it: only what means the
  // same to both is clear.
  const double usual = RopeConfig::yarn_mscale(factor, 1.0);
  const double own = keys.number("scaling.yarn_attn_factor", 1.0);
  keys.require(own < 0.0 || own == 1.0 || std::abs(own - usual) <= kSameTemperature * usual,
               "scaling.yarn_attn_factor", decimal(own),
               "1 and 0.1 ln(factor) + 1 are; take the model's Hugging Face folder");
  const double logarithm = keys.number("scaling.yarn_log_multiplier", 0.0);
  keys.require(logarithm == 0.0, "scaling.yarn_log_multiplier", decimal(logarithm),
               "0 is; take the model's Hugging Face folder");
  if (temperature != 1.0) scaling["attention_factor"] = usual * temperature;
  return scaling;
}

}  // namespace

Status read_gguf_rope_scaling(const GgufFile& file, const std::string& prefix,
                              std::int64_t positions, json& out) {
  RopeKeys keys(file, prefix);
  const std::string type = keys.text("scaling.type", "linear");
  const double factor = read_factor(keys);
  const double temperature = keys.number("scaling.attn_factor", 1.0);
  keys.require(temperature > 0.0, "scaling.attn_factor", decimal(temperature),
               "a number above 0 is");
  const bool is_plain = type == "none" || ((type.empty() || type == "linear") && factor == 1.0);
  keys.require(is_plain || type == "linear" || type == "yarn", "scaling.type", "\"" + type + "\"",
               "none, linear and yarn are in GGUF files; take the model's Hugging Face folder");
  if (type == "yarn") {
    out["rope_scaling"] = read_gguf_yarn(keys, factor, temperature, positions);
  } else if (!is_plain) {
    keys.require(temperature == 1.0, "scaling.attn_factor", decimal(temperature),
                 "with a linear factor only 1 is");
    out["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};
  } else if (temperature != 1.0) {
    // YaRN that stretches nothing leaves the temperature alone.
    out["rope_scaling"] = {{"rope_type", "yarn"},
                           {"factor", 1.0},
                           {"original_max_position_embeddings", positions},
                           {"attention_factor", temperature}};
  }
  return keys.status();
}

// The parameters that give these divisors, among those that were ever published: factors 8 and 32,
// ramp from 1 to 4, context 8192.
Status read_gguf_rope_divisors(const GgufFile& file, std::int64_t head_dim, double theta,
                               json& out) {
  const TensorInfo* info = file.find("rope_freqs.weight");
  if (info == nullptr) return {};
  if (out.contains("rope_scaling")) {
    return runtime::unimplemented(file.name() + ": rope_freqs.weight with rope.scaling." +
                                  out["rope_scaling"]["rope_type"].get<std::string>() +
                                  " is not supported (one of the two is)");
  }
  std::vector<float> divisors(static_cast<std::size_t>(head_dim / 2));
  if (Status status = file.read_f32("rope_freqs.weight", divisors); !status.ok()) return status;
  const RopeConfig plain{.theta = theta};
  RopeConfig scaled = plain;
  scaled.kind = RopeConfig::Kind::kLlama3;
  scaled.factor = divisors.back();
  scaled.original_max_position_embeddings = 8192;
  const std::vector<float> before = Rope(plain, head_dim).inverse_frequencies();
  const std::vector<float> after = Rope(scaled, head_dim).inverse_frequencies();
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    const float expected = before[i] / after[i];
    if (!(std::abs(divisors[i] - expected) <= 1e-4F * expected)) {
      return runtime::unimplemented(
          file.name() +
          ": rope_freqs.weight is no Llama 3 scaling; others are not supported in GGUF files");
    }
  }
  out["rope_scaling"] = {
      {"rope_type", "llama3"},
      {"factor", scaled.factor},
      {"low_freq_factor", scaled.low_freq_factor},
      {"high_freq_factor", scaled.high_freq_factor},
      {"original_max_position_embeddings", scaled.original_max_position_embeddings}};
  return {};
}

}  // namespace rl
