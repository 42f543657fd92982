#include "placement/app/cli_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "placement/app/cli_filter.h"
#include "placement/app/cli_status.h"
#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

namespace control = runtime::control;

class ListCommand : public ::testing::Test {
 protected:
  ListCommand() { options_.address = cluster_.address(); }
  Said list(const char* kind) {
    options_.kind = kind;
    return said_by([&] { return list_command(options_); });
  }
  nlohmann::ordered_json list_json(const char* kind) {
    options_.json = true;
    return nlohmann::ordered_json::parse(list(kind).out, nullptr, false);
  }
  /// Actors in the order of their ids, of which a page has two at most.
  void serve_actors(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      runtime::ActorState actor;
      actor.actor.bytes[0] = static_cast<std::uint8_t>(i + 1);
      actor.class_name = "Counter";
      actor.resources = {{"CPU", 1}};
      actors_.push_back(actor);
    }
    cluster_.on_observe<control::ListActors>([this](const control::ListActors& request) {
      asked_.push_back(request);
      runtime::ActorPage page;
      for (const runtime::ActorState& actor : actors_) {
        if (actor.actor <= request.after) continue;
        if (page.actors.size() == std::min<std::size_t>(2, request.limit)) {
          page.next = page.actors.back().actor;
          break;
        }
        page.actors.push_back(actor);
      }
      return page;
    });
  }
  std::string id(std::size_t actor) const { return actors_[actor].actor.hex(); }

  FakeCluster cluster_;
  ListOptions options_;
  std::vector<runtime::ActorState> actors_;
  std::vector<control::ListActors> asked_;
};

TEST_F(ListCommand, PagesOfActorsAreOneArray) {
  serve_actors(5);
  options_.json = true;
  const Said said = list("actors");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.err, "");
  auto whole = nlohmann::ordered_json::array();
  for (const runtime::ActorState& actor : actors_) whole.push_back(to_json(actor));
  EXPECT_EQ(said.out, whole.dump(2) + "\n");
  EXPECT_EQ(asked_.size(), 3u);
}

TEST_F(ListCommand, NoActorsAreAnEmptyArray) {
  serve_actors(0);
  options_.json = true;
  EXPECT_EQ(list("actors").out, "[]\n");
}

TEST_F(ListCommand, ALimitEndsWhereTheNextListBegins) {
  serve_actors(5);
  options_.limit = 3;
  const Said first = list("actors");
  EXPECT_EQ(first.code, 0);
  EXPECT_EQ(std::count(first.out.begin(), first.out.end(), '\n'), 3) << first.out;
  EXPECT_EQ(first.err, "there are more: --after " + id(2) + "\n");
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[0].limit, 3u);
  EXPECT_EQ(asked_[1].limit, 1u) << "of what is missing only";
  options_.after = id(2);
  const Said rest = list("actors");
  EXPECT_EQ(rest.err, "");
  EXPECT_EQ(std::count(rest.out.begin(), rest.out.end(), '\n'), 2) << rest.out;
  EXPECT_NE(rest.out.find(id(3).substr(0, 8)), std::string::npos) << rest.out;
}

TEST_F(ListCommand, TheHeadFiltersActors) {
  serve_actors(0);
  options_.filters = {"class=Counter"};
  options_.state = "alive";
  EXPECT_EQ(list("actors").code, 0);
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].filters, (Filters{{"class", "Counter"}, {"state", "alive"}}));
}

TEST_F(ListCommand, AStateIsAFilter) {
  const runtime::NodeId leaving = cluster_.add_node().node;
  cluster_.state.nodes.back().drain = runtime::NodeDrain();
  options_.state = "draining";
  const Said said = list("nodes");
  EXPECT_EQ(said.code, 0);
  expect_said(said.out, {leaving.short_hex()});
  EXPECT_EQ(said.out.find(cluster_.node().id.short_hex()), std::string::npos) << said.out;
  const auto nodes = list_json("nodes");
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0]["id"], leaving.hex());
}

TEST_F(ListCommand, WorkersComeFromTheNodesThatAnswer) {
  runtime::WorkerInfo shared, single;
  shared.worker = single.worker = runtime::WorkerId::random();
  shared.state = "shared";
  shared.actors = 3;
  shared.memory_bytes = 3 << 19;
  single.state = "actor";
  single.class_name = "Counter";
  single.actor = runtime::ActorId::random();
  cluster_.on_observe<control::ListWorkers>([&](const auto&) {
    return runtime::WorkerList{shared, single};
  });
  const std::string gone = cluster_.add_node().node.short_hex();
  const Said said = list("workers");
  EXPECT_EQ(said.code, 1) << "what is listed is not all";
  expect_said(said.err, {"node " + gone, "has not answered"});
  expect_said(said.out,
              {"1.5 MiB", "3 shared actors\n", "Counter " + single.actor.short_hex() + "\n"});
  options_.filters = {"actor=" + single.actor.hex().substr(0, 5)};
  const auto workers = list_json("workers");
  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(workers[0]["class"], "Counter");
}

TEST_F(ListCommand, AMistakeIsNamedBeforeTheClusterIsAsked) {
  cluster_.node().close();
  options_.filters = {"colour=red"};
  for (const char* kind : {"nodes", "workers", "objects", "jobs", "placement-groups"}) {
    const Said said = list(kind);
    EXPECT_EQ(said.code, 1);
    expect_said(said.err, {std::string(kind) + " have no field 'colour'"});
  }
  options_.filters.clear();
  options_.after = "a1";
  expect_said(list("actors").err, {"--after"});
  expect_said(list("jobs").err, {"--limit and --after are for actors; jobs"});
  options_.after.clear();
  const Said said = list("planets");
  EXPECT_EQ(said.code, 2);
  expect_said(said.err, {"'planets'", "placement-groups"});
}

}  // namespace
}  // namespace placement
