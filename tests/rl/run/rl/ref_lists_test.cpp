#include "rl/run/rl/ref_lists.h"

#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

using Ref = runtime::ObjectRef<RolloutBatch>;

std::vector<const void*> states_in(const BatchRefs& refs) {
  std::vector<const void*> states;
  for (const Ref& ref : refs) states.push_back(ref.state().get());
  return states;
}

TEST(RefLists, AnObjectThatIsNotThereIsAnEmptyOneForEachWorker) {
  FakeObjects<RolloutBatch> objects;
  const Ref nothing = objects.put({}), there = objects.put({});
  EXPECT_EQ(states_in(filled({}, nothing, 2)), states_in({nothing, nothing}));
  EXPECT_EQ(states_in(filled({Ref(), there}, nothing, 3)), states_in({nothing, there, nothing}));
}

// A batch of another worker is fetched over the network.
TEST(RefLists, AWorkerIsGivenTheBatchesThatItsPlacesAreIn) {
  FakeObjects<RolloutBatch> objects;
  const Ref nothing = objects.put({});
  const BatchRefs batches{objects.put({}), objects.put({}), objects.put({})};
  const PromptPlaces places{
      {{.worker = 2, .row = 0}, {.worker = 0, .row = 1}, {.worker = 2, .row = 3}},
      {},
      {{.worker = 1, .row = 0}}};
  const std::vector<BatchRefs> needed = needed_batches(batches, places, nothing);
  ASSERT_EQ(needed.size(), 3u);
  EXPECT_EQ(states_in(needed[0]), states_in({batches[0], nothing, batches[2]}));
  EXPECT_EQ(states_in(needed[1]), states_in({nothing, nothing, nothing}));
  EXPECT_EQ(states_in(needed[2]), states_in({nothing, batches[1], nothing}));
}

}  // namespace
}  // namespace rl
