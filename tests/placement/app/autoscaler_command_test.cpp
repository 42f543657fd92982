// The command line of `starling autoscaler`.
#include <fstream>
#include <nlohmann/json.hpp>

#include "placement/autoscaler/autoscaler.h"
#include "tests/placement/app/command_line.h"

namespace placement {
namespace {

namespace control = runtime::control;

TEST(AutoscalerCommand, OffersWhatIsForPeople) {
  const CleanEnvironment environment;
  expect_refused(said_to(add_autoscaler, {"autoscaler"}), 2,
                 {"a command is missing: status, check\n"});
  expect_refused(said_to(add_autoscaler, {"autoscaler", "check"}), 2, {"file"});
}

TEST(AutoscalerCommand, ChecksAFileWithoutACluster) {
  const CleanEnvironment environment;
  const std::string file = environment.folder().file("scale.yaml");
  expect_refused(said_to(add_autoscaler, {"autoscaler", "check", file}), 1, {file});
  std::ofstream(file) << "max_nodes: 4\nnode_types: {w: {resources: {CPU: 1}, max_nodes: 1}}\n";
  const Said good = said_to(add_autoscaler, {"autoscaler", "check", file});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.out, file + ": 0 to 4 nodes, of 1 type\n");
}

TEST(AutoscalerCommand, AsksTheClusterForTheStatus) {
  FakeCluster cluster;
  std::string asked;
  cluster.on<control::KvGet>([&](const control::KvGet& request) {
    asked = request.key;
    return std::string(R"({"nodes": []})");
  });
  const Said said =
      said_to(add_autoscaler, {"autoscaler", "status", "--json", "--address", cluster.address()});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(asked, kStatusKey);
  EXPECT_EQ(nlohmann::json::parse(said.out), nlohmann::json::parse(R"({"nodes": []})"));
}

}  // namespace
}  // namespace placement
