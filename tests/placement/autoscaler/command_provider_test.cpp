#include "placement/autoscaler/command_provider.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace placement {
namespace {

using Ids = std::vector<std::string>;

TEST(ProviderList, HasTheIdsOfNodes) {
  EXPECT_EQ(*parse_node_list("[]\n"), Ids{});
  EXPECT_EQ(*parse_node_list(R"(["cpu-1", "gpu 2"])"), (Ids{"cpu-1", "gpu 2"}));
  EXPECT_EQ(*parse_node_list(R"({"nodes": ["cpu-1"]})"), Ids{"cpu-1"});
}

TEST(ProviderList, NothingElseIsTakenForOne) {
  const std::string long_id = "[\"" + std::string(201, 'x') + "\"]";
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[1]"), std::string(R"([""])"), long_id,
        std::string(R"({"nodes": {}})"), std::string(R"(["a\nb"])"),
        std::string(R"(["\u001b[31m"])"), std::string("[\"a\"]\0", 6)}) {
    EXPECT_EQ(parse_node_list(text).status().code(), runtime::ErrorCode::kInvalidArgument) << text;
  }
}

// What copies such a value is recursive.
TEST(ProviderList, DeepNestingIsRefused) {
  const std::string deep = std::string(400'000, '[') + std::string(400'000, ']');
  for (const std::string& text : {deep, "{\"nodes\": " + deep + "}"})
    EXPECT_FALSE(parse_node_list(text).ok());
}

TEST(CommandProvider, ARemovalByHandIsOneCommandWhateverTheIdIs) {
  runtime::EventLoop loop;
  ProviderOptions options;
  options.command = {"/opt/nodes.sh", "it's"};
  NodeStart start;
  start.cluster = "c1";
  CommandProvider provider(loop, options, start);
  EXPECT_EQ(provider.removal_by_hand("cpu-1f"),
            R"(STARLING_NODE_ID=cpu-1f STARLING_CLUSTER=c1 '/opt/nodes.sh' 'it'\''s' 'remove')");
  const std::string odd = provider.removal_by_hand("; rm -r x");
  EXPECT_TRUE(odd.starts_with("STARLING_NODE_ID='; rm -r x' STARLING_CLUSTER=c1 ")) << odd;
}

}  // namespace
}  // namespace placement
