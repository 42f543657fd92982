#include "placement/autoscaler/config_file.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <functional>
#include <set>

#include "runtime/control/label_value.h"
#include "runtime/process/file_util.h"

namespace placement {

namespace {

using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;
using std::chrono::milliseconds;

constexpr std::size_t kFileBytesMax = 1 << 20;
constexpr std::size_t kCommandWordsMax = 100;
constexpr std::size_t kLabelsMax = 100;
constexpr std::size_t kNameBytesMax = 40;

struct Unit {
  const char* name;
  double factor;
};
constexpr Unit kTimes[] = {{"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}};
constexpr Unit kSizes[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
                           {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}};

/// A number and what follows it; nothing unless there is a number.
std::optional<std::pair<double, std::string>> number_and_unit(const std::string& text) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  return std::pair(number, std::string(end, text.data() + text.size()));
}

/// Reads one configuration; the first mistake stays.
class Reader {
 public:
  Reader(std::string name, std::filesystem::path folder)
      : name_(std::move(name)), folder_(std::move(folder)) {}

  Result<AutoscalerConfig> read(const YAML::Node& root) {
    AutoscalerConfig config;
    config.max_nodes = 0;
    Keys keys;
    keys["min_nodes"] = [&](const YAML::Node& node) {
      count(node, "min_nodes", config.min_nodes, 0, AutoscalerConfig::kNodesMax);
    };
    keys["max_nodes"] = [&](const YAML::Node& node) {
      count(node, "max_nodes", config.max_nodes, 1, AutoscalerConfig::kNodesMax);
    };
    keys["idle_timeout"] = duration_key("idle_timeout", config.idle_timeout);
    keys["start_timeout"] = duration_key("start_timeout", config.start_timeout);
    keys["stop_timeout"] = duration_key("stop_timeout", config.stop_timeout);
    keys["interval"] = duration_key("interval", config.interval);
    keys["cooldown"] = [&](const YAML::Node& node) {
      section(node, "cooldown",
              {{"up", duration_key("cooldown.up", config.up_cooldown)},
               {"down", duration_key("cooldown.down", config.down_cooldown)}});
    };
    keys["retry"] = [&](const YAML::Node& node) {
      section(node, "retry",
              {{"first", duration_key("retry.first", config.retry_first)},
               {"max", duration_key("retry.max", config.retry_max)}});
    };
    keys["provider"] = [&](const YAML::Node& node) { provider(node, config.provider); };
    keys["node_types"] = [&](const YAML::Node& node) { types(node, config.types); };
    section(root, "", std::move(keys));
    if (status_.ok()) check(root, config);
    if (!status_.ok()) return status_;
    return config;
  }

 private:
  using Keys = std::map<std::string, std::function<void(const YAML::Node&)>>;

  void fail(const YAML::Node& node, const std::string& what) {
    if (status_.ok())
      status_ = invalid_argument(name_ + ":" + std::to_string(std::max(0, node.Mark().line) + 1) +
                                 ": " + what);
  }

  void section(const YAML::Node& node, const std::string& path, const Keys& keys) {
    if (!node.IsMap())
      return fail(node, path.empty() ? "the configuration is a mapping of keys to values"
                                     : path + " takes a mapping");
    std::set<std::string> seen;
    for (const auto& member : node) {
      if (!status_.ok()) return;
      if (!member.first.IsScalar()) return fail(member.first, "a key must be a word");
      const std::string& key = member.first.Scalar();
      const std::string full = path.empty() ? key : path + "." + key;
      if (!seen.insert(key).second)
        return fail(member.first, "the key '" + full + "' occurs twice");
      auto known = keys.find(key);
      if (known == keys.end()) {
        std::string names;
        for (const auto& [name, read] : keys) names += (names.empty() ? "" : ", ") + name;
        return fail(member.first, "unknown key '" + full + "'; there are " + names);
      }
      known->second(member.second);
    }
  }

  std::string scalar(const YAML::Node& node, const std::string& key) {
    if (node.IsScalar()) return node.Scalar();
    fail(node, key + " takes one value");
    return "";
  }

  void count(const YAML::Node& node, const std::string& key, std::size_t& value, std::size_t least,
             std::size_t most) {
    const std::string text = scalar(node, key);
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
      return;
    fail(node, key + " is '" + text + "': it takes a whole number from " + std::to_string(least) +
                   " to " + std::to_string(most));
  }

  std::function<void(const YAML::Node&)> duration_key(const std::string& key, milliseconds& value) {
    return [this, key, &value](const YAML::Node& node) { duration(node, key, value); };
  }

  void duration(const YAML::Node& node, const std::string& key, milliseconds& value) {
    const std::string text = scalar(node, key);
    if (auto parsed = number_and_unit(text)) {
      for (const Unit& unit : kTimes) {
        const double time = parsed->first * unit.factor;
        if (parsed->second != unit.name || time < 0 || time > 30 * 8.64e7) continue;
        value = milliseconds(static_cast<std::int64_t>(time));
        return;
      }
    }
    fail(node, key + " is '" + text +
                   "': it takes a time with its unit, like 500ms, 30s, 5m or 1h, up to 30d");
  }

  void amounts(const YAML::Node& node, const std::string& path, Resources& resources) {
    if (!node.IsMap() || node.size() == 0)
      return fail(node, path + " takes a mapping of names to amounts, like {CPU: 4, memory: 8GiB}");
    runtime::ResourceMap map;
    for (const auto& member : node) {
      const std::string name = member.first.IsScalar() ? member.first.Scalar() : "";
      const std::string text = scalar(member.second, path + "." + name);
      auto parsed = number_and_unit(text);
      double factor = parsed && parsed->second.empty() ? 1 : 0;
      for (const Unit& unit : kSizes) {
        if (parsed && parsed->second == unit.name) factor = unit.factor;
      }
      if (factor == 0 || parsed->first < 0)
        return fail(member.second,
                    path + "." + name + " is '" + text +
                        "': it takes an amount from zero up, with KiB, MiB, GiB or TiB for bytes");
      if (!map.emplace(name, parsed->first * factor).second)
        return fail(member.first, "the key '" + path + "." + name + "' occurs twice");
    }
    auto exact = Resources::from_map(map);
    if (!exact.ok()) return fail(node, path + ": " + exact.status().message());
    if (exact->empty()) return fail(node, path + ": a node without any resources is for nothing");
    resources = *exact;
  }

  void labels(const YAML::Node& node, const std::string& path, runtime::Labels& labels) {
    if (!node.IsMap() || node.size() > kLabelsMax)
      return fail(node, path + " takes a mapping of up to 100 names to values, like {zone: a}");
    for (const auto& member : node) {
      const std::string name = member.first.IsScalar() ? member.first.Scalar() : "";
      if (name.empty() || name.find('=') != std::string::npos)
        return fail(member.first, path + ": '" + name + "' is not a label name");
      if (name.starts_with("starling.io/"))
        return fail(member.first, path + ": '" + name +
                                      "': names that begin with starling.io/ are set by Starling");
      if (const Status status =
              runtime::check_label_value(scalar(member.second, path + "." + name));
          !status.ok()) {
        return fail(member.second, path + "." + name + ": " + status.message());
      }
      if (!labels.emplace(name, scalar(member.second, path + "." + name)).second)
        return fail(member.first, "the key '" + path + "." + name + "' occurs twice");
    }
  }

  void spot(const YAML::Node& node, const std::string& path, SpotOptions& spot) {
    spot.share = 1;
    section(node, path,
            {{"share", [&](const YAML::Node& value) { share(value, path + ".share", spot.share); }},
             {"on_demand_base",
              [&](const YAML::Node& value) {
                count(value, path + ".on_demand_base", spot.on_demand_base, 0,
                      AutoscalerConfig::kNodesMax);
              }},
             {"failures",
              [&](const YAML::Node& value) {
                count(value, path + ".failures", spot.failures, 1, 100);
              }},
             {"window", duration_key(path + ".window", spot.window)},
             {"fallback", duration_key(path + ".fallback", spot.fallback)}});
  }

  void share(const YAML::Node& node, const std::string& key, double& value) {
    const std::string text = scalar(node, key);
    auto parsed = number_and_unit(text);
    if (!parsed || !parsed->second.empty() || parsed->first < 0 || parsed->first > 1)
      return fail(node, key + " is '" + text + "': it takes a number from 0 to 1");
    value = parsed->first;
  }

  void types(const YAML::Node& node, std::vector<NodeType>& types) {
    if (!node.IsMap() || node.size() == 0 || node.size() > AutoscalerConfig::kTypesMax)
      return fail(node, "node_types takes a mapping of 1 to 100 names to types");
    std::set<std::string> names;
    for (const auto& member : node) {
      NodeType type;
      type.name = member.first.IsScalar() ? member.first.Scalar() : "";
      const std::string path = "node_types." + type.name;
      const bool is_name = !type.name.empty() && type.name.size() <= kNameBytesMax &&
                           type.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") ==
                               std::string::npos &&
                           type.name[0] != '-';
      if (!is_name)
        return fail(member.first,
                    "'" + type.name + "' is not a node type name: up to 40 of a-z, 0-9 and -");
      if (!names.insert(type.name).second)
        return fail(member.first, "the key '" + path + "' occurs twice");
      section(
          member.second, path,
          {{"resources",
            [&](const YAML::Node& value) { amounts(value, path + ".resources", type.resources); }},
           {"labels",
            [&](const YAML::Node& value) { labels(value, path + ".labels", type.labels); }},
           {"min_nodes",
            [&](const YAML::Node& value) {
              count(value, path + ".min_nodes", type.min_nodes, 0, AutoscalerConfig::kNodesMax);
            }},
           {"max_nodes",
            [&](const YAML::Node& value) {
              count(value, path + ".max_nodes", type.max_nodes, 0, AutoscalerConfig::kNodesMax);
            }},
           {"spot", [&](const YAML::Node& value) { spot(value, path + ".spot", type.spot); }}});
      if (!status_.ok()) return;
      if (type.resources.empty())
        return fail(member.first, path + " lacks its resources, like {CPU: 4}");
      if (!member.second["max_nodes"].IsDefined())
        return fail(member.first, path + " lacks its max_nodes");
      if (type.min_nodes > type.max_nodes)
        return fail(member.first, path + ": min_nodes, " + std::to_string(type.min_nodes) +
                                      ", is more than max_nodes, " +
                                      std::to_string(type.max_nodes));
      types.push_back(std::move(type));
    }
  }

  void provider(const YAML::Node& node, ProviderOptions& options) {
    section(
        node, "provider",
        {{"type",
          [&](const YAML::Node& value) {
            const std::string kind = scalar(value, "provider.type");
            if (kind != "local" && kind != "command")
              return fail(value, "provider.type is '" + kind + "': there are local and command");
            options.kind =
                kind == "local" ? ProviderOptions::Kind::kLocal : ProviderOptions::Kind::kCommand;
          }},
         {"command",
          [&](const YAML::Node& value) {
            if (!value.IsSequence() || value.size() == 0 || value.size() > kCommandWordsMax)
              return fail(value,
                          "provider.command takes a list of words, like [./nodes.sh, --zone, b]");
            for (const auto& word : value)
              options.command.push_back(scalar(word, "provider.command"));
          }},
         {"timeout", duration_key("provider.timeout", options.timeout)},
         {"parallel", [&](const YAML::Node& value) {
            count(value, "provider.parallel", options.parallel, 1, 100);
          }}});
    if (!status_.ok()) return;
    const bool is_command = options.kind == ProviderOptions::Kind::kCommand;
    if (is_command && options.command.empty())
      return fail(node, "provider.command is missing: what adds and removes nodes");
    if (!is_command && !options.command.empty())
      return fail(node, "provider.command goes with type: command");
    if (options.timeout < std::chrono::seconds(1))
      return fail(node, "provider.timeout is at least 1s");
    if (!is_command) return;
    std::string& program = options.command.front();
    if (program.empty()) return fail(node, "provider.command: its first word is empty");
    if (program.find('/') != std::string::npos)
      program = (folder_ / program).lexically_normal().string();
  }

  void check(const YAML::Node& root, const AutoscalerConfig& config) {
    if (config.max_nodes == 0)
      return fail(root,
                  "max_nodes is missing: how many nodes the cluster may have, including the head's "
                  "local node");
    if (config.types.empty()) return fail(root, "node_types is missing: what may be added");
    if (config.min_nodes > config.max_nodes)
      return fail(root, "min_nodes, " + std::to_string(config.min_nodes) +
                            ", is more than max_nodes, " + std::to_string(config.max_nodes));
    std::size_t least = 1, most = 0;  // the node next to the head
    for (const NodeType& type : config.types) {
      least += type.min_nodes;
      most += type.max_nodes;
    }
    if (least > config.max_nodes) {
      return fail(root,
                  "max_nodes, " + std::to_string(config.max_nodes) +
                      ", is less than the min_nodes of all types and the head's local node, " +
                      std::to_string(least));
    }
    if (config.min_nodes > most + 1) {
      return fail(root,
                  "min_nodes, " + std::to_string(config.min_nodes) +
                      ", is more than the max_nodes of all types and the head's local node, " +
                      std::to_string(most + 1));
    }
    if (config.interval < milliseconds(50)) return fail(root, "interval is at least 50ms");
    if (config.start_timeout < std::chrono::seconds(1))
      return fail(root, "start_timeout is at least 1s");
    if (config.retry_first < milliseconds(50)) return fail(root, "retry.first is at least 50ms");
    if (config.retry_first > config.retry_max)
      return fail(root, "retry.first is more than retry.max");
    if (config.stop_timeout > std::chrono::minutes(10))
      return fail(root, "stop_timeout is at most 10m");
  }

  const std::string name_;
  const std::filesystem::path folder_;
  Status status_;
};

}  // namespace

Result<AutoscalerConfig> parse_autoscaler_config(const std::string& text, const std::string& name,
                                                 const std::filesystem::path& folder) {
  if (text.find('\0') != std::string::npos) return invalid_argument(name + ": not a text in UTF-8");
  try {
    return Reader(name, folder).read(YAML::Load(text));
  } catch (const YAML::Exception& exception) {
    return invalid_argument(name + ":" + std::to_string(std::max(0, exception.mark.line) + 1) +
                            ": " + exception.msg);
  }
}

Result<AutoscalerConfig> read_autoscaler_config(const std::filesystem::path& file) {
  auto text = runtime::read_file(file, kFileBytesMax);
  if (!text.ok()) return text.status().with_context("the autoscaler's configuration");
  return parse_autoscaler_config(*text, file.string(),
                                 std::filesystem::absolute(file).parent_path());
}

}  // namespace placement
