// Published objects: versions that belong to the cluster.
#include <algorithm>
#include <atomic>

#include "tests/runtime/sharing/sharing_fixture.h"

namespace runtime::test {
namespace {

constexpr std::size_t kLarge = 1 << 19;   // 4 MiB: its own range
constexpr std::size_t kMiddle = 1 << 14;  // 128 KiB: shares a slab with others

class PublishedTest : public SharingTest {
 protected:
  void publish(const std::string& name, std::uint64_t version, std::size_t count,
               PublishOptions options = {}) {
    auto ref = rt_->put(numbers(version, count));
    ASSERT_TRUE(ref.ok()) << ref.status().to_string();
    Status status = rt_->published().publish(name, version, *ref, options);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  /// The latest version, whose value is checked.
  std::uint64_t read(const std::string& name, const PublishedQuery& query = {}) {
    auto found = rt_->published().latest<Numbers>(name, query, 20s);
    EXPECT_TRUE(found.ok()) << found.status().to_string();
    if (!found.ok()) return 0;
    auto view = rt_->objects().view(found->ref, 20s);
    EXPECT_TRUE(view.ok()) << view.status().to_string();
    EXPECT_TRUE(view.ok() && is_from(found->version, *view));
    return found->version;
  }
};

TEST_F(PublishedTest, VersionsOfAllSizesAreFoundByDriverAndActorsOnTheirNodeAndOthers) {
  NodeId second = add_node();
  auto near = keeper(rt_->cluster().node_id()), far = keeper(second);
  for (std::size_t count : {std::size_t{10}, kMiddle, kLarge}) {
    const std::string name = "of " + std::to_string(count);
    publish(name, 5, count);
    EXPECT_EQ(read(name), 5u);
    EXPECT_EQ(get(near.call(&Keeper::latest, name)), 5u);
    EXPECT_EQ(get(far.call(&Keeper::latest, name)), 5u);
    get(far.call(&Keeper::publish, name, std::uint64_t{6}, std::uint64_t{count}));
    EXPECT_EQ(read(name), 6u);
    EXPECT_EQ(read(name, {.exactly = 5}), 5u);
  }
}

TEST_F(PublishedTest, OutliveTheProcessThatMadeThem) {
  auto maker = keeper();
  get(maker.call(&Keeper::publish, "by an actor", std::uint64_t{1}, std::uint64_t{kLarge}));
  crash(maker);
  auto result = program({"--publisher"})->wait();
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(read("by an actor"), 1u);
  EXPECT_EQ(read("weights"), 3u) << "of a driver that has ended";
  EXPECT_EQ(read("weights", {.exactly = 2}), 2u);
}

TEST_F(PublishedTest, AVersionThatIsNotLargerIsRefused) {
  publish("w", 7, 10);
  for (std::uint64_t version : {7u, 3u}) {
    auto ref = rt_->put(numbers(1, kLarge));
    expect_failure(rt_->published().publish("w", version, *ref), ErrorCode::kInvalidArgument,
                   {"version " + std::to_string(version), "not larger than the latest, 7", "'w'"});
  }
  EXPECT_EQ(read("w"), 7u);
}

TEST_F(PublishedTest, OnlyTheLastVersionsStayAndReadersKeepTheirs) {
  auto reader = keeper();
  publish("w", 1, kLarge, {.keep_last = 2});
  EXPECT_EQ(get(reader.call(&Keeper::view_and_hold, "w")), 1u);
  auto first = rt_->published().latest<Numbers>("w");
  ASSERT_TRUE(first.ok());
  for (std::uint64_t version = 2; version <= 6; ++version)
    publish("w", version, kLarge, {.keep_last = 2});
  expect_failure(rt_->published().latest<Numbers>("w", {.exactly = 1}, 5s).status(),
                 ErrorCode::kNotFound, {"versions 5 to 6", "not 1"});
  EXPECT_TRUE(get(reader.call(&Keeper::held_is_from, std::uint64_t{1})))
      << "a view keeps the memory";
  auto late = rt_->objects().view(first->ref, 20s);
  ASSERT_TRUE(late.ok()) << "a reference keeps it too: " << late.status().to_string();
  EXPECT_TRUE(is_from(1, *late));
  late = ArrayView<std::uint64_t>();
  first = not_found("dropped");
  get(reader.call(&Keeper::drop_all));
  EXPECT_TRUE(eventually([&] { return refs().objects.size() == 2; })) << describe(refs());
  ASSERT_TRUE(rt_->published().unpublish("w", 5).ok());
  ASSERT_TRUE(rt_->published().unpublish("w").ok());
  expect_failure(rt_->published().latest<Numbers>("w").status(), ErrorCode::kNotFound,
                 {"nothing is published as 'w'"});
  EXPECT_TRUE(eventually([&] { return is_empty(refs()); })) << describe(refs());
}

TEST_F(PublishedTest, AVersionIsWaitedFor) {
  auto later = rt_->published().when<Numbers>("w", {.at_least = 2});
  std::atomic<std::uint64_t> seen = 0;
  Watch watch =
      rt_->published().watch("w", [&](const PublishedEvent& event) { seen = event.version; });
  expect_failure(rt_->published().latest<Numbers>("w", {.at_least = 1}, 100ms).status(),
                 ErrorCode::kDeadlineExceeded, {"no process has published 'w'"});
  publish("w", 1, 10);
  EXPECT_TRUE(eventually([&] { return seen == 1; }));
  EXPECT_FALSE(later.is_ready());
  publish("w", 2, kMiddle);
  EXPECT_TRUE(eventually([&] { return seen == 2; }));
  EXPECT_EQ(get(later), numbers(2, kMiddle));
  auto reader = keeper();
  auto future = rt_->published().when<Numbers>("w", {.at_least = 3});
  auto call = reader.call(&Keeper::first_of, future);  // starts when there is such a version
  publish("w", 4, kLarge);
  EXPECT_EQ(get(call), numbers(4, 1)[0]);
}

TEST_F(PublishedTest, CopiesOutliveTheirNode) {
  NodeId second = add_node();
  auto maker = keeper(second);
  auto ref = maker.call(&Keeper::produce, std::uint64_t{1}, std::uint64_t{kLarge});
  ASSERT_TRUE(rt_->published().publish("kept", 1, ref, {.copies = 2}).ok());
  ASSERT_TRUE(rt_->published().publish("single", 1, ref).ok());
  expect_failure(rt_->published().publish("too many", 1, ref, {.copies = 3}),
                 ErrorCode::kResourceExhausted, {"3 copies", "2 nodes"});
  ref = {};
  nodes_[0]->signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return nodes().size() == 1; }));
  EXPECT_EQ(read("kept"), 1u);
  expect_failure(rt_->published().latest<Numbers>("single").status(), ErrorCode::kObjectLost,
                 {"version 1 of 'single'", second.short_hex(), "is gone"});
}

TEST_F(PublishedTest, ReadersTurnToAnotherCopyWhenANodeIsLost) {
  NodeId second = add_node(), third = add_node();
  auto maker = keeper(second);
  const std::vector<ActorHandle<Keeper>> readers{
      keeper(rt_->cluster().node_id()), keeper(third)};  // one of them on a node without a copy
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < 6; ++i) {
    names.push_back("w" + std::to_string(i));
    auto ref =
        maker.call(&Keeper::produce, std::uint64_t{1}, std::uint64_t{i % 2 ? kLarge : kMiddle});
    ASSERT_TRUE(rt_->published().publish(names.back(), 1, ref, {.copies = 2}).ok());
  }
  for (const auto& reader : readers) {
    for (const std::string& name : names) get(reader.call(&Keeper::hold_latest, name));
  }
  auto passed_on = keeper(rt_->cluster().node_id());
  get(readers[1].call(&Keeper::hand_on, passed_on));
  nodes_[0]->signal(SIGKILL);
  for (const auto& reader : readers) {
    for (const std::string& name : names)
      EXPECT_EQ(get(reader.call(&Keeper::latest, name)), 1u)
          << name << " right after the node's end";
    EXPECT_EQ(get(reader.call(&Keeper::read_all)), std::vector<std::string>())
        << "what was held before";
  }
  EXPECT_EQ(get(passed_on.call(&Keeper::read_all)), std::vector<std::string>())
      << "what another process has passed on";
}

TEST_F(PublishedTest, IsReadAsWhatItWasPublishedAs) {
  publish("small", 1, 10);
  publish("large", 1, kLarge);
  for (const char* name : {"small", "large"}) {
    expect_failure(
        rt_->published().latest<std::vector<float>>(name).status(), ErrorCode::kInvalidArgument,
        {"version 1 of '" + std::string(name) + "' was published as std::vector<unsigned long",
         "not as std::vector<float"});
    auto wrong = rt_->published().when<std::string>(name, {.at_least = 1});
    EXPECT_EQ(rt_->get(wrong, 20s).status().code(), ErrorCode::kInvalidArgument);
    auto view = rt_->published().latest<ArrayView<std::uint64_t>>(name);
    ASSERT_TRUE(view.ok()) << view.status().to_string();
    EXPECT_TRUE(rt_->objects().view(view->ref, 20s).ok());
  }
}

TEST_F(PublishedTest, WhatCannotBePublishedIsExplained) {
  auto inner = rt_->put(numbers(1, 10));
  auto outer = rt_->put(std::vector<ObjectRef<Numbers>>{*inner});
  expect_failure(rt_->published().publish("nested", 1, *outer), ErrorCode::kInvalidArgument,
                 {"'nested'", "references to other objects"});
  expect_failure(rt_->published().publish("", 1, *inner), ErrorCode::kInvalidArgument, {"name"});
  expect_failure(rt_->published().publish("zero", 0, *inner), ErrorCode::kInvalidArgument,
                 {"version 0"});
  expect_failure(rt_->published().unpublish("never"), ErrorCode::kNotFound, {"'never'"});
  auto maker = keeper();
  auto ref = maker.call(&Keeper::make, std::uint64_t{1}, std::uint64_t{kLarge});
  auto known = get(ref);
  ref = {};
  ASSERT_TRUE(rt_->kill(maker).ok());
  EXPECT_TRUE(eventually([&] {
    return rt_->published().publish("lost", 1, known.ref).code() == ErrorCode::kObjectLost;
  }));
}

}  // namespace
}  // namespace runtime::test
