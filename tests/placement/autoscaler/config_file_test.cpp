#include "placement/autoscaler/config_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "placement/autoscaler/node_record.h"

namespace placement {
namespace {

using namespace std::chrono_literals;

runtime::Result<AutoscalerConfig> parse(const std::string& text) {
  return parse_autoscaler_config(text, "nodes.yaml", "/etc/starling");
}

constexpr const char* kSmall =
    "max_nodes: 4\nnode_types:\n  cpu: {resources: {CPU: 4}, max_nodes: 3}\n";

TEST(AutoscalerConfigFile, ReadsAllKeys) {
  auto config = parse(R"(
min_nodes: 2
max_nodes: 20
idle_timeout: 90s
start_timeout: 5m
stop_timeout: 1m
interval: 250ms
cooldown: {up: 0s, down: 1.5m}
retry: {first: 1s, max: 1h}
provider:
  type: command
  command: [./nodes.sh, --zone, b]
  timeout: 20s
  parallel: 3
node_types:
  gpu-large:
    resources: {CPU: 16, GPU: 4, memory: 64GiB, disk: 1.5}
    labels: {zone: b}
    min_nodes: 1
    max_nodes: 4
    spot: {share: 0.75, on_demand_base: 1, failures: 3, window: 5m, fallback: 20m}
  cpu:
    resources: {CPU: 4}
    max_nodes: 10
    spot: {}
)");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->min_nodes, 2u);
  EXPECT_EQ(config->max_nodes, 20u);
  EXPECT_EQ(config->idle_timeout, 90s);
  EXPECT_EQ(config->interval, 250ms);
  EXPECT_EQ(config->up_cooldown, 0s);
  EXPECT_EQ(config->down_cooldown, 90s);
  EXPECT_EQ(config->retry_max, 1h);
  EXPECT_EQ(config->provider.command,
            (std::vector<std::string>{"/etc/starling/nodes.sh", "--zone", "b"}));
  EXPECT_EQ(config->provider.timeout, 20s);
  ASSERT_EQ(config->types.size(), 2u);
  const NodeType& gpu = config->types[0];  // in the file's order
  EXPECT_EQ(gpu.name, "gpu-large");
  EXPECT_EQ(gpu.resources.to_map().at("memory"), 64.0 * (1 << 30));
  EXPECT_EQ(gpu.spot.share, 0.75);
  EXPECT_EQ(gpu.spot.fallback, 20min);
  EXPECT_EQ(config->types[1].spot.share, 1);
}

TEST(AutoscalerConfigFile, HasDefaults) {
  auto config = parse(kSmall);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->provider.kind, ProviderOptions::Kind::kLocal);
  EXPECT_EQ(config->types[0].spot.share, 0);
}

struct Mistake {
  const char* text;
  const char* message;
};

class AutoscalerConfigMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(AutoscalerConfigMistake, IsNamedWithItsLine) {
  std::string text = GetParam().text;
  if (text.find("node_types") == std::string::npos)
    text += "\nnode_types:\n  cpu: {resources: {CPU: 4}, max_nodes: 3}\n";
  auto config = parse(text);
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_TRUE(config.status().message().starts_with("nodes.yaml:")) << config.status().message();
  EXPECT_NE(config.status().message().find(GetParam().message), std::string::npos)
      << config.status().message();
}

INSTANTIATE_TEST_SUITE_P(
    All, AutoscalerConfigMistake,
    ::testing::Values(
        Mistake{"max_nodes: 4\nmax_node: 5",
                "nodes.yaml:2: unknown key 'max_node'; there are cooldown, idle_timeout, interval, "
                "max_nodes, "},
        Mistake{"max_nodes: 4\nmax_nodes: 5", "occurs twice"},
        Mistake{"max_nodes: many", "max_nodes is 'many': it takes a whole number from 1 to 1000"},
        Mistake{"max_nodes: -1", "max_nodes is '-1'"}, Mistake{"max_nodes: 1001", "1 to 1000"},
        Mistake{"max_nodes: [4]", "max_nodes takes one value"},
        Mistake{"min_nodes: 1", "max_nodes is missing"},
        Mistake{"max_nodes: 4\nmin_nodes: 5", "min_nodes, 5, is more than max_nodes, 4"},
        Mistake{"max_nodes: 10\nmin_nodes: 5",
                "more than the max_nodes of all types and the head's local node, 4"},
        Mistake{"max_nodes: 4\nidle_timeout: 30",
                "idle_timeout is '30': it takes a time with its unit"},
        Mistake{"max_nodes: 4\nidle_timeout: -1s", "idle_timeout"},
        Mistake{"max_nodes: 4\ncooldown: 5s", "cooldown takes a mapping"},
        Mistake{"max_nodes: 4\ncooldown: {sideways: 5s}",
                "unknown key 'cooldown.sideways'; there are down, up"},
        Mistake{"max_nodes: 4\nretry: {first: 10m, max: 1m}", "retry.first is more than retry.max"},
        Mistake{"max_nodes: 4\ninterval: 1ms", "interval is at least 50ms"},
        Mistake{"max_nodes: 4\nprovider: {type: slurm}", "there are local and command"},
        Mistake{"max_nodes: 4\nprovider: {type: command}", "provider.command is missing"},
        Mistake{"max_nodes: 4\nprovider: {command: [x]}", "goes with type: command"},
        Mistake{"max_nodes: 4\nprovider: {type: command, command: x}", "takes a list of words"},
        Mistake{"max_nodes: 4\nprovider: {parallel: 0}", "provider.parallel"},
        Mistake{"max_nodes: 4\nnode_types: {}", "1 to 100 names"},
        Mistake{"max_nodes: 4\nnode_types: {Cpu: {}}", "'Cpu' is not a node type name"},
        Mistake{"max_nodes: 4\nnode_types: {cpu: {max_nodes: 1}}", "lacks its resources"},
        Mistake{"max_nodes: 4\nnode_types: {cpu: {resources: {CPU: 1}}}", "lacks its max_nodes"},
        Mistake{"max_nodes: 4\nnode_types: {cpu: {resources: {CPU: lots}, max_nodes: 1}}",
                "node_types.cpu.resources.CPU is 'lots'"},
        Mistake{"max_nodes: 4\nnode_types: {cpu: {resources: {CPU: -2}, max_nodes: 1}}",
                "from zero up"},
        Mistake{
            "max_nodes: 4\nnode_types: {cpu: {resources: {CPU: 1}, max_nodes: 1, min_nodes: 2}}",
            "is more than max_nodes, 1"},
        Mistake{
            "max_nodes: 4\nnode_types: {cpu: {resources: {CPU: 1}, max_nodes: 9, min_nodes: 4}}",
            "less than the min_nodes of all types"},
        Mistake{"max_nodes: 4\nnode_types: {cpu: {resources: {CPU: 1}, max_nodes: 1, labels: "
                "{starling.io/x: y}}}",
                "set by Starling"},
        Mistake{"max_nodes: 4\nnode_types: {cpu: {resources: {CPU: 1}, max_nodes: 1, spot: {share: "
                "2}}}",
                "node_types.cpu.spot.share is '2'"},
        Mistake{"max_nodes: 4\nnode_types: {cpu: {resources: {CPU: 1}, max_nodes: 1, spot: yes}}",
                "takes a mapping"},
        Mistake{"max_nodes: [4\nnode_types", "nodes.yaml:"}, Mistake{"- node_types", "mapping"},
        Mistake{"", "max_nodes is missing"}));

TEST(AutoscalerConfigFile, TheGuidesExampleIsRightAndItsDefaultsAreTheOnes) {
  std::ifstream page(STARLING_SOURCE_DIR "/docs/guide/autoscaler.md");
  std::string text, line;
  while (std::getline(page, line) && line != "```yaml") {
  }
  while (std::getline(page, line) && line != "```") text += line + "\n";
  auto config = parse(text);
  ASSERT_TRUE(config.ok()) << config.status().message();
  ASSERT_EQ(config->types.size(), 2u);
  const AutoscalerConfig defaults;
  EXPECT_EQ(config->idle_timeout, defaults.idle_timeout);
  EXPECT_EQ(config->start_timeout, defaults.start_timeout);
  EXPECT_EQ(config->stop_timeout, defaults.stop_timeout);
  EXPECT_EQ(config->up_cooldown, defaults.up_cooldown);
  EXPECT_EQ(config->down_cooldown, defaults.down_cooldown);
  EXPECT_EQ(config->retry_first, defaults.retry_first);
  EXPECT_EQ(config->retry_max, defaults.retry_max);
  EXPECT_EQ(config->interval, defaults.interval);
  EXPECT_EQ(config->provider.timeout, defaults.provider.timeout);
  EXPECT_EQ(config->provider.parallel, defaults.provider.parallel);
  EXPECT_EQ(config->types[1].spot.failures, SpotOptions().failures);
  EXPECT_EQ(config->types[1].spot.window, SpotOptions().window);
  EXPECT_EQ(config->types[1].spot.fallback, SpotOptions().fallback);
}

TEST(AutoscalerConfigFile, NoFileIsNamed) {
  auto config = read_autoscaler_config("/nowhere/nodes.yaml");
  EXPECT_EQ(config.status().code(), runtime::ErrorCode::kNotFound);
  EXPECT_NE(config.status().message().find("/nowhere/nodes.yaml"), std::string::npos)
      << config.status().message();
}

TEST(NodeRecords, BadOnesAreNamed) {
  EXPECT_TRUE(decode_records(encode_records({})).ok());
  for (
      const char* text :
      {"", "[]", "{}", R"({"version":1})", R"({"version":1,"nodes":[1]})",
       R"({"version":1,"nodes":[{"id":"a"}]})",
       R"({"version":1,"nodes":[{"id":"a","type":"t","phase":"asleep","capacity":"spot","node":"","reason":""}]})"}) {
    EXPECT_EQ(decode_records(text).status().code(), runtime::ErrorCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(decode_records(R"({"version":2,"nodes":[]})").status().code(),
            runtime::ErrorCode::kUnimplemented);
}

}  // namespace
}  // namespace placement
