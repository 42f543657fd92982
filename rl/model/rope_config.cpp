#include "rl/model/rope_config.h"

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "rl/model/json_fields.h"

namespace rl {
namespace {

using nlohmann::json;

constexpr std::int64_t kRopePositionsMax = std::int64_t{1} << 26;

// What the model was trained with first: next to the object (Phi-3) before inside it.
std::int64_t read_original_positions(JsonFields& fields, JsonFields& scaling,
                                     std::int64_t positions, const RopeDefaults& defaults) {
  constexpr const char* kKey = "original_max_position_embeddings";
  if (defaults.original_positions > 0 && !fields.has(kKey)) return defaults.original_positions;
  return fields.has(kKey) ? fields.integer(kKey, 1, kRopePositionsMax)
                          : scaling.integer(kKey, positions, 1, kRopePositionsMax);
}

void read_yarn(JsonFields& fields, JsonFields& scaling, RopeConfig& rope, std::int64_t positions,
               const RopeDefaults& defaults) {
  rope.kind = RopeConfig::Kind::kYarn;
  rope.original_max_position_embeddings =
      read_original_positions(fields, scaling, positions, defaults);
  const double stretched =
      static_cast<double>(positions) / static_cast<double>(rope.original_max_position_embeddings);
  rope.factor = scaling.number("factor", stretched, 1.0);
  rope.beta_fast = scaling.number("beta_fast", 32.0, 1e-6);
  rope.beta_slow = scaling.number("beta_slow", 1.0, 1e-6);
  rope.truncate = scaling.boolean("truncate", true);
  const double mscale = scaling.number("mscale", 0.0, 0.0);
  rope.mscale_all_dim = scaling.number("mscale_all_dim", 0.0, 0.0);
  const double both = mscale != 0.0 && rope.mscale_all_dim != 0.0
                          ? RopeConfig::yarn_mscale(rope.factor, mscale) /
                                RopeConfig::yarn_mscale(rope.factor, rope.mscale_all_dim)
                          : RopeConfig::yarn_mscale(rope.factor, 1.0);
  rope.attention_factor = scaling.number("attention_factor", both, 0.0);
}

void read_long_rope(JsonFields& fields, JsonFields& scaling, RopeConfig& rope,
                    std::int64_t positions, std::int64_t rotary_dim, const RopeDefaults& defaults) {
  rope.kind = RopeConfig::Kind::kLongRope;
  rope.original_max_position_embeddings =
      read_original_positions(fields, scaling, positions, defaults);
  rope.factor = scaling.number(
      "factor",
      static_cast<double>(positions) / static_cast<double>(rope.original_max_position_embeddings),
      0.0);
  const auto context = static_cast<double>(rope.original_max_position_embeddings);
  const double grown =
      rope.factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(rope.factor) / std::log(context));
  rope.attention_factor = scaling.number("attention_factor", grown, 0.0);
  rope.short_factors =
      scaling.numbers("short_factor", static_cast<std::size_t>(rotary_dim / 2), 1e-6);
  rope.long_factors =
      scaling.numbers("long_factor", static_cast<std::size_t>(rotary_dim / 2), 1e-6);
}

// Keys that no kind knows: what they were to change is not known either.
void refuse_unknown(JsonFields& scaling, const json& object) {
  static const std::set<std::string, std::less<>> known{"attention_factor",
                                                        "beta_fast",
                                                        "beta_slow",
                                                        "factor",
                                                        "finetuned",
                                                        "high_freq_factor",
                                                        "long_factor",
                                                        "low_freq_factor",
                                                        "mscale",
                                                        "mscale_all_dim",
                                                        "original_max_position_embeddings",
                                                        "partial_rotary_factor",
                                                        "rope_theta",
                                                        "rope_type",
                                                        "short_factor",
                                                        "truncate",
                                                        "type"};
  for (const auto& [key, value] : object.items())
    if (!known.contains(key) && !value.is_null()) scaling.refuse(key, "without such a key it is");
}

}  // namespace

double RopeConfig::yarn_mscale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

std::string rope_object(JsonFields& fields) {
  const bool old_form = fields.has("rope_scaling") && !fields.object("rope_scaling").empty();
  return old_form || !fields.has("rope_parameters") ? "rope_scaling" : "rope_parameters";
}

RopeConfig read_rope(JsonFields& fields, const std::string& where, std::int64_t positions,
                     std::int64_t rotary_dim, const RopeDefaults& defaults) {
  RopeConfig rope;
  rope.theta = fields.number("rope_theta", defaults.theta, 1.0);
  const std::string key = rope_object(fields);
  if (!fields.has(key)) return rope;
  JsonFields scaling(fields.object(key), where + ": " + key);
  rope.theta = scaling.number("rope_theta", rope.theta, 1.0);
  const std::string type_key = scaling.has("rope_type") ? "rope_type" : "type";
  std::string kind = scaling.text(type_key, "default");
  if (kind == "su" || (kind == "yarn" && scaling.has("long_factor")))
    kind = "longrope";  // older names of Phi-3's
  if (kind == "linear") {
    rope.kind = RopeConfig::Kind::kLinear;
    rope.factor = scaling.number("factor", 1.0, 1.0);
  } else if (kind == "dynamic") {
    rope.kind = RopeConfig::Kind::kDynamic;
    rope.factor = scaling.number("factor", 1.0, 1.0);
    rope.original_max_position_embeddings = positions;  // whatever the object says
  } else if (kind == "llama3") {
    rope.kind = RopeConfig::Kind::kLlama3;
    rope.factor = scaling.number("factor", 8.0, 1.0);
    rope.low_freq_factor = scaling.number("low_freq_factor", 1.0, 1e-6);
    rope.high_freq_factor = scaling.number("high_freq_factor", 4.0, 1e-6);
    rope.original_max_position_embeddings =
        read_original_positions(fields, scaling, positions, defaults);
    if (rope.high_freq_factor <= rope.low_freq_factor)
      scaling.refuse("high_freq_factor", "one above low_freq_factor is");
  } else if (kind == "yarn") {
    read_yarn(fields, scaling, rope, positions, defaults);
  } else if (kind == "longrope") {
    read_long_rope(fields, scaling, rope, positions, rotary_dim, defaults);
  } else if (kind != "default") {
    scaling.refuse(type_key, "default, linear, dynamic, llama3, yarn and longrope are");
  }
  refuse_unknown(scaling, fields.object(key));
  fields.merge(scaling);
  return rope;
}

void write_rope(const RopeConfig& rope, json& out) {
  out["rope_theta"] = rope.theta;
  json& scaling = out["rope_scaling"];
  switch (rope.kind) {
    case RopeConfig::Kind::kDefault: break;
    case RopeConfig::Kind::kLinear:
      scaling = {{"rope_type", "linear"}, {"factor", rope.factor}};
      break;
    case RopeConfig::Kind::kDynamic:
      scaling = {{"rope_type", "dynamic"}, {"factor", rope.factor}};
      break;
    case RopeConfig::Kind::kLlama3:
      scaling = {{"rope_type", "llama3"},
                 {"factor", rope.factor},
                 {"low_freq_factor", rope.low_freq_factor},
                 {"high_freq_factor", rope.high_freq_factor}};
      break;
    case RopeConfig::Kind::kYarn:
      scaling = {{"rope_type", "yarn"},         {"factor", rope.factor},
                 {"beta_fast", rope.beta_fast}, {"beta_slow", rope.beta_slow},
                 {"truncate", rope.truncate},   {"attention_factor", rope.attention_factor}};
      break;
    case RopeConfig::Kind::kLongRope: scaling = {{"rope_type", "longrope"}}; break;
  }
  if (rope.original_max_position_embeddings > 0)
    scaling["original_max_position_embeddings"] = rope.original_max_position_embeddings;
}

}  // namespace rl
