// The list of objects with what keeps them, in the API and on the command line; what borrowers and
// lenders that die leave behind.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/runtime/sharing/sharing_fixture.h"
#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

constexpr std::size_t kLargeArray = 1 << 19;  // 4 MiB

class RefsTest : public SharingTest {
 protected:
  const ObjectInfo* find(const ObjectList& list, std::uint64_t size_least = kLargeArray * 8) {
    auto found = std::find_if(list.objects.begin(), list.objects.end(),
                              [&](const ObjectInfo& object) { return object.size >= size_least; });
    return found == list.objects.end() ? nullptr : &*found;
  }
};

TEST_F(RefsTest, SaysWhoKeepsAnObject) {
  NodeId second = add_node();
  auto near = keeper(rt_->cluster().node_id()), far = keeper(second);
  auto ref = rt_->put(numbers(1, kLargeArray));
  ASSERT_TRUE(ref.ok());
  Parcel parcel;
  parcel.list.push_back({1, *ref});
  get(near.call(&Keeper::keep, parcel));
  get(near.call(&Keeper::hand_on, far));
  ASSERT_TRUE(rt_->published().publish("w", 3, *ref).ok());
  parcel = {};
  ASSERT_TRUE(eventually([&] {
    const ObjectList list = refs();
    const ObjectInfo* object = find(list);
    return object && object->borrowers.size() == 2 && object->held == 1;
  })) << describe(refs());
  const ObjectList list = refs();
  const ObjectInfo& object = *find(list);
  EXPECT_EQ(object.node, rt_->cluster().node_id());
  EXPECT_EQ(object.place, ObjectPlace::kMemory);
  EXPECT_EQ(object.owner, "driver");
  EXPECT_EQ(object.owner_pid, ::getpid());
  EXPECT_EQ(object.handles, 1u);
  EXPECT_EQ(object.lent, 1u);
  EXPECT_EQ(object.in_flight, 0u);
  EXPECT_EQ(object.published, std::vector<std::string>{"shared/w@3"});
  for (const auto& actor : {near, far}) {
    auto by =
        std::find_if(object.borrowers.begin(), object.borrowers.end(),
                     [&](const ObjectBorrower& borrower) { return borrower.pid == actor.pid(); });
    ASSERT_NE(by, object.borrowers.end()) << actor.pid();
    EXPECT_EQ(by->name, "Keeper " + actor.id().short_hex());
  }
  auto result =
      run({STARLING_BIN_DIR "/starling", "list", "objects", "--address", address(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.output;
  auto json = nlohmann::json::parse(result.output);
  ASSERT_EQ(json["objects"].size(), 1u) << result.output;
  EXPECT_EQ(json["objects"][0]["id"], object.id.hex());
  EXPECT_EQ(json["objects"][0]["bytes"], object.size);
  EXPECT_EQ(json["objects"][0]["owner_pid"], ::getpid());
  EXPECT_EQ(json["objects"][0]["borrowers"].size(), 2u);
  EXPECT_EQ(json["objects"][0]["published"][0], "shared/w@3");
  EXPECT_EQ(json["stores"].size(), 2u);
  auto text = run({STARLING_BIN_DIR "/starling", "list", "objects", "--address", address()});
  EXPECT_NE(text.output.find(object.id.hex()), std::string::npos) << text.output;
  EXPECT_NE(text.output.find("published as shared/w@3"), std::string::npos) << text.output;
  auto help = run({STARLING_BIN_DIR "/starling", "list", "--help"});
  EXPECT_NE(help.output.find("objects"), std::string::npos) << help.output;
}

TEST_F(RefsTest, AnOwnerThatIsStoppedIsNamedAndNotGone) {
  NodeId second = add_node();
  auto maker = keeper(second), near = keeper(second), far = keeper(rt_->cluster().node_id());
  Parcel parcel;
  parcel.list.push_back(
      get(maker.call(&Keeper::make, std::uint64_t{4}, std::uint64_t{kLargeArray})));
  get(near.call(&Keeper::keep, parcel));
  get(far.call(&Keeper::keep, parcel));
  ASSERT_EQ(::kill(maker.pid(), SIGSTOP), 0);
  auto text = run({STARLING_BIN_DIR "/starling", "list", "objects", "--address", address()});
  auto result =
      run({STARLING_BIN_DIR "/starling", "list", "objects", "--address", address(), "--json"});
  ASSERT_EQ(::kill(maker.pid(), SIGCONT), 0);
  EXPECT_EQ(text.exit_code, 1) << text.output;
  EXPECT_EQ(text.output.find("owner gone"), std::string::npos) << text.output;
  EXPECT_NE(text.output.find("Keeper " + maker.id().short_hex() + " (pid " +
                             std::to_string(maker.pid()) + "): "),
            std::string::npos)
      << text.output;
  EXPECT_NE(text.output.find("(pid " + std::to_string(maker.pid()) + ") on node " +
                             second.short_hex() + " does not answer"),
            std::string::npos)
      << text.output;
  const auto json = nlohmann::json::parse(
      result.output.substr(std::min(result.output.find('{'), result.output.size())), nullptr,
      false);
  ASSERT_TRUE(json.is_object()) << result.output;
  EXPECT_EQ(json["troubles"].size(), 1u) << result.output;
  auto whole = run({STARLING_BIN_DIR "/starling", "list", "objects", "--address", address()});
  EXPECT_EQ(whole.exit_code, 0) << whole.output;
}

TEST_F(RefsTest, ACopyThatIsLeftOfALivingOwnersObjectSaysSo) {
  NodeId second = add_node();
  auto far = keeper(second);
  {
    auto ref = rt_->put(numbers(1, kLargeArray));
    ASSERT_TRUE(ref.ok());
    Parcel parcel;
    parcel.list.push_back({1, *ref});
    get(far.call(&Keeper::keep, parcel));
    EXPECT_EQ(get(far.call(&Keeper::read_all)), std::vector<std::string>());  // copied there
    get(far.call(&Keeper::drop_all));
  }
  // The copy may go at any time; as long as it is shown, no process is called gone.
  for (int look = 0; look < 20; ++look) {
    auto text = run({STARLING_BIN_DIR "/starling", "list", "objects", "--address", address()});
    EXPECT_EQ(text.exit_code, 0) << text.output;
    EXPECT_EQ(text.output.find("owner gone"), std::string::npos) << text.output;
  }
}

TEST_F(RefsTest, TheOwnerKeepsWhatADeadBorrowerPassedOn) {
  NodeId second = add_node();
  auto middle = keeper(second), last = keeper(second);
  for (std::size_t count :
       {std::size_t{1} << 14, kLargeArray}) {  // in a slab with others; in its own range
    Parcel parcel;
    auto ref = rt_->put(numbers(2, count));
    ASSERT_TRUE(ref.ok());
    parcel.list.push_back({2, *ref});
    get(middle.call(&Keeper::keep, parcel));
  }
  get(middle.call(&Keeper::hand_on, last));  // the driver holds nothing itself any more
  crash(middle);
  support::hold_for(3s);  // what was lent to the dead is given up after two
  EXPECT_EQ(get(last.call(&Keeper::read_all)), std::vector<std::string>());
  get(last.call(&Keeper::drop_all));
  EXPECT_TRUE(eventually([&] { return is_empty(refs()); })) << describe(refs());
}

TEST_F(RefsTest, ALostObjectSaysWhoseItWasAndHowThatEnded) {
  NodeId second = add_node();
  auto maker = keeper(second), reader = keeper();
  Parcel parcel;
  parcel.list.push_back(
      get(maker.call(&Keeper::make, std::uint64_t{4}, std::uint64_t{kLargeArray})));
  get(reader.call(&Keeper::keep, parcel));
  const std::string pid = std::to_string(maker.pid());
  crash(maker);
  auto view = rt_->objects().view(parcel.list[0].ref, 20s);
  expect_failure(
      view.status(), ErrorCode::kObjectLost,
      {"object ", "on node " + second.short_hex(), "its owner, worker", "pid " + pid, "SIGKILL"});
  auto lost = get(reader.call(&Keeper::read_all));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NE(lost[0].find("pid " + pid), std::string::npos) << lost[0];
}

TEST_F(RefsTest, ALostNodeIsNamed) {
  NodeId second = add_node();
  auto maker = keeper(second);
  auto ref = maker.call(&Keeper::produce, std::uint64_t{4}, std::uint64_t{kLargeArray});
  ASSERT_TRUE(ref.is_valid() && rt_->wait(std::vector{ref}, 1, 20s).ready.size() == 1);
  nodes_[0]->signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return nodes().size() == 1; }));
  expect_failure(rt_->objects().view(ref, 20s).status(), ErrorCode::kObjectLost,
                 {"object ", "node " + second.short_hex(), "has left the cluster"});
}

TEST_F(RefsTest, ADriverThatIsKilledIsNamedToo) {
  auto reader = keeper({}, {.name = "keeper"});
  auto lender = program({"--lender", "keeper", "9"});
  ASSERT_TRUE(eventually([&] { return lender->output().find("lent") != std::string::npos; }))
      << lender->output();
  EXPECT_EQ(get(reader.call(&Keeper::read_all)), std::vector<std::string>());
  const std::string pid = std::to_string(lender->pid());
  lender->signal(SIGKILL);
  lender->wait();
  EXPECT_TRUE(eventually([&] {
    auto lost = get(reader.call(&Keeper::read_all));
    return lost.size() == 1 && lost[0].find("its owner, driver (pid " + pid) != std::string::npos;
  }));
  get(reader.call(&Keeper::drop_all));
  EXPECT_TRUE(eventually([&] { return is_empty(refs()); })) << describe(refs());
}

}  // namespace
}  // namespace runtime::test
