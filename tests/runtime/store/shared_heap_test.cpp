// A process's side of shared memory: what it asks of the store, and what it does without.
#include "runtime/store/shared_heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/runtime/transport/channel_pair.h"
#include "tests/support/blocking_thread.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using Extents = std::vector<std::uint64_t>;

constexpr std::uint64_t kSlab = 16 * kPageBytes;
constexpr std::uint64_t kWholeSegment = 64 * kSlab;
constexpr std::size_t kHalfSlab = kSlab / 2;  // too much for a slab

/// The store that a process is connected with. It leases one range after the other, answers what
/// it has an answer for, and notes what it is told. On the loop.
class StandInStore {
 public:
  explicit StandInStore(EventLoop& loop)
      : pair(loop, peer_of(Role::kNode), peer_of(Role::kDriver)) {
    auto made = Segment::create(kWholeSegment);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    segment = *std::move(made);
    pair.far->set_handler([this](const std::shared_ptr<Channel>& from, Message message) {
      auto request = object_wire::decode_request(message.meta);
      ASSERT_TRUE(request.ok()) << request.status().to_string();
      note(*request);
      if (message.id == 0) return;
      if (std::holds_alternative<object_wire::Lease>(*request) && holds_leases)
        held.push_back(std::move(message));
      else
        reply(from, message, *request);
    });
  }

  /// Answers the oldest lease that is held.
  void grant() {
    Message request = std::move(held.front());
    held.pop_front();
    reply(pair.far, request, *object_wire::decode_request(request.meta));
  }
  /// An object of another process.
  ObjectLocation add_object(const std::string& text) {
    const Extent extent = lease(kPageBytes);
    ObjectLocation location{ObjectId::random(), node,
                            "10.0.0.1:1",       0,
                            extent.id,          extent.range.begin + sizeof(ObjectHeader),
                            text.size()};
    put(location, text);
    extents[extent.id] = extent;
    return location;
  }
  void put(const ObjectLocation& at, const std::string& text) {
    std::memcpy(segment->writable() + at.offset, text.data(), text.size());
    segment->stamp(at, ObjectHeader::kSealed);
  }
  Extent lease(std::uint64_t bytes) {
    const std::uint64_t size = round_to_pages(bytes);
    const Extent extent{++last, {next_begin, size}, next_begin};
    next_begin += size;
    return extent;
  }

  const NodeId node = NodeId::random();
  ChannelPair pair;
  std::unique_ptr<Segment> segment;
  std::map<std::uint64_t, Extent> extents;  // that can be pinned
  std::optional<Buffer> lease_answer;       // instead of a lease
  std::optional<Buffer> fetch_answer;
  bool holds_leases = false, shows_segment = true;
  std::deque<Message> held;
  std::uint64_t last = 0, next_begin = 0;

  // What it was asked and told.
  std::vector<std::uint64_t> leases;  // the bytes of each
  Extents given_back, pinned, unpinned;
  int keeps = 0;

 private:
  void note(const object_wire::Request& request) {
    const auto add = [](Extents& to, const Extents& more) {
      to.insert(to.end(), more.begin(), more.end());
    };
    if (auto* asked = std::get_if<object_wire::Lease>(&request)) leases.push_back(asked->bytes);
    if (auto* asked = std::get_if<object_wire::Pin>(&request)) pinned.push_back(asked->extent);
    if (auto* told = std::get_if<object_wire::GiveBack>(&request)) add(given_back, told->extents);
    if (auto* told = std::get_if<object_wire::Unpin>(&request)) add(unpinned, told->extents);
    keeps += std::holds_alternative<object_wire::Keep>(request) ? 1 : 0;
  }
  Buffer answer_to(const object_wire::Request& request) {
    if (auto* asked = std::get_if<object_wire::Lease>(&request))
      return lease_answer ? *lease_answer : object_wire::encode_reply(lease(asked->bytes));
    if (auto* asked = std::get_if<object_wire::Pin>(&request))
      return extents.contains(asked->extent)
                 ? object_wire::encode_reply(extents[asked->extent])
                 : object_wire::encode_failure(object_lost("its owner has freed it"));
    if (std::holds_alternative<object_wire::Fetch>(request) && fetch_answer) return *fetch_answer;
    return object_wire::encode_reply(object_wire::Done{});
  }
  void reply(const std::shared_ptr<Channel>& to, const Message& message,
             const object_wire::Request& request) {
    const bool opens = std::holds_alternative<object_wire::Open>(request);
    Message answer = reply_to(message, opens ? object_wire::encode_reply(object_wire::StoreInfo{
                                                   node, "10.0.0.1:1", 0, kWholeSegment, kSlab})
                                             : answer_to(request));
    if (opens && shows_segment) answer.fds.push_back(*segment->duplicate());
    (void)to->send(std::move(answer));
  }
};

class SharedHeapTest : public ::testing::Test {
 protected:
  ~SharedHeapTest() override {
    heap_->retire();
    run_on(loop_, [&] { store_.pair.close(); });
    run_on(loop_, [] {});  // what that closed
  }
  static Deadline soon() { return deadline_after(20s); }

  Result<WritableObject> create(std::size_t size) { return heap_->create(size, {}, soon()); }
  ObjectLocation put(std::size_t size, char value = 'x') {
    auto object = create(size);
    EXPECT_TRUE(object.ok()) << object.status().to_string();
    std::memset(object->data().data(), value, object->data().size());
    return heap_->seal(*std::move(object));
  }
  Result<BytesView> get(const ObjectLocation& location) {
    return wait_for<BytesView>(loop_, soon(),
                               [&](auto done) { heap_->get(location, soon(), done); });
  }
  std::string text_at(const ObjectLocation& location) {
    const Result<BytesView> view = get(location);
    EXPECT_TRUE(view.ok()) << view.status().to_string();
    return view.ok() ? std::string(view->buffer().text()) : "";
  }
  /// Waits until the store has got all that it was told.
  StandInStore& told() {
    const int before = on_loop(loop_, [&] { return store_.keeps; });
    heap_->borrow({});
    EXPECT_TRUE(comes_true(loop_, [&] { return store_.keeps > before; }));
    return store_;
  }

  /// Returns once what the store has answered is here.
  void hear_all() {
    ObjectLocation unknown;
    unknown.node = store_.node;
    unknown.extent = 1'000'000;
    EXPECT_FALSE(get(unknown).ok());
  }

  EventLoop loop_;
  StandInStore store_{loop_};
  std::shared_ptr<SharedHeap> heap_ =
      std::make_shared<SharedHeap>(store_.pair.near, ObjectClientOptions());
};

// -- Creating

TEST_F(SharedHeapTest, SmallObjectsAreCutFromOneSlab) {
  std::vector<ObjectLocation> objects;
  for (char value = 'a'; value < 'f'; ++value) objects.push_back(put(100, value));
  EXPECT_EQ(told().leases, Extents{kSlab});
  for (std::size_t i = 0; i < objects.size(); ++i) {
    EXPECT_EQ(objects[i].offset % kObjectAlignment, 0u);
    EXPECT_EQ(text_at(objects[i]), std::string(100, static_cast<char>('a' + i)));
    for (std::size_t other = 0; other < i; ++other) EXPECT_NE(objects[i].id, objects[other].id);
  }
  EXPECT_TRUE(told().pinned.empty()) << "its own ones cost no message";
}

TEST_F(SharedHeapTest, TheNextSlabIsThereBeforeOneIsFull) {
  // Four objects of an eighth of a slab fit into a half.
  for (int i = 0; i < 5; ++i) put(kSlab / 8 - sizeof(ObjectHeader));
  EXPECT_TRUE(comes_true(loop_, [&] { return store_.leases.size() == 2; }));
  hear_all();
  run_on(loop_, [&] { store_.holds_leases = true; });
  for (int i = 0; i < 5; ++i) put(kSlab / 8 - sizeof(ObjectHeader));
  EXPECT_EQ(told().leases, (Extents{kSlab, kSlab})) << "it waited for none";
}

TEST_F(SharedHeapTest, AFullSlabGoesBackWithItsLastObject) {
  constexpr std::size_t kQuarter = kSlab / 4 - sizeof(ObjectHeader);
  std::vector<ObjectLocation> objects;
  for (int i = 0; i < 5; ++i) objects.push_back(put(kQuarter));
  ASSERT_NE(objects[4].extent, objects[3].extent);
  for (int i = 0; i < 3; ++i) heap_->free(objects[static_cast<std::size_t>(i)]);
  heap_->free(objects[0]);
  EXPECT_TRUE(told().given_back.empty()) << "freed twice is freed once";
  heap_->free(objects[3]);
  EXPECT_EQ(told().given_back, Extents{objects[0].extent});
  EXPECT_FALSE(get(objects[3]).ok());
}

TEST_F(SharedHeapTest, ALargeObjectHasARangeOfItsOwn) {
  const ObjectLocation object = put(kHalfSlab);
  EXPECT_EQ(told().leases, Extents{object_bytes(kHalfSlab)});
  const Result<BytesView> view = get(object);
  ASSERT_TRUE(view.ok());
  heap_->free(object);
  heap_->free(object);
  EXPECT_TRUE(told().given_back.empty()) << "it is being read";
  EXPECT_EQ(view->buffer().text().back(), 'x');
}

TEST_F(SharedHeapTest, AFreedRangeGoesBackWithItsLastView) {
  const ObjectLocation object = put(kHalfSlab);
  {
    const Result<BytesView> view = get(object);
    heap_->free(object);
    const Result<BytesView> other = get(object);
    EXPECT_EQ(other.status().code(), ErrorCode::kObjectLost);
    EXPECT_EQ(told().pinned, Extents{object.extent}) << "the store may keep it in its own name";
  }
  EXPECT_EQ(told().given_back, Extents{object.extent});
}

TEST_F(SharedHeapTest, AnUnsealedObjectThatIsDroppedGivesItsMemoryBack) {
  ObjectLocation dropped;
  {
    auto object = create(kHalfSlab);
    ASSERT_TRUE(object.ok());
    dropped = object->location();
    EXPECT_EQ(get(dropped).status().code(), ErrorCode::kObjectLost) << "it is not sealed";
  }
  EXPECT_EQ(told().given_back, Extents{dropped.extent});
}

TEST_F(SharedHeapTest, WhatOthersAreAboutToCopyIsNotFreed) {
  const ObjectLocation object = put(kHalfSlab);
  heap_->keep_all();
  heap_->free(object);
  EXPECT_TRUE(told().given_back.empty());
  EXPECT_TRUE(get(object).ok());
}

TEST_F(SharedHeapTest, WhatCanNeverFitIsNotAskedFor) {
  EXPECT_EQ(create(kWholeSegment + 1).status().code(), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(told().leases.empty());
}

TEST_F(SharedHeapTest, AFullStoreSaysSo) {
  run_on(loop_,
         [&] { store_.lease_answer = object_wire::encode_failure(resource_exhausted("full")); });
  EXPECT_EQ(create(kHalfSlab).status(), resource_exhausted("full"));
  EXPECT_EQ(create(1).status(), resource_exhausted("full"));
  run_on(loop_, [&] { store_.lease_answer.reset(); });
  EXPECT_TRUE(create(1).ok());
}

TEST_F(SharedHeapTest, NoRangeIsTakenThatIsNotTheStores) {
  for (const Extent& bad : {Extent{1, {kWholeSegment - kPageBytes, kHalfSlab + kPageBytes}, 0},
                            Extent{2, {1, kSlab}, 1}, Extent{3, {0, kPageBytes}, 0},
                            Extent{4, {kPageBytes, ~std::uint64_t{0}}, 0}}) {
    run_on(loop_, [&] { store_.lease_answer = object_wire::encode_reply(bad); });
    EXPECT_EQ(create(kHalfSlab).status().code(), ErrorCode::kInvalidArgument) << bad.id;
  }
  run_on(loop_, [&] { store_.lease_answer = object_wire::encode_reply(object_wire::Done{}); });
  EXPECT_EQ(create(kHalfSlab).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(SharedHeapTest, ARangeIsNotTakenTwice) {
  run_on(loop_, [&] { store_.lease_answer = object_wire::encode_reply(Extent{9, {0, kSlab}, 0}); });
  const auto first = create(kHalfSlab);
  EXPECT_TRUE(first.ok()) << first.status().to_string();
  EXPECT_EQ(create(kHalfSlab).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(SharedHeapTest, AStoreWithoutASegmentIsNone) {
  run_on(loop_, [&] { store_.shows_segment = false; });
  EXPECT_EQ(create(1).status().code(), ErrorCode::kInvalidArgument);
  run_on(loop_, [&] { store_.shows_segment = true; });
  EXPECT_TRUE(create(1).ok()) << "it is asked again";
}

TEST_F(SharedHeapTest, OneThatIsToldToStopWaitsForNoRoom) {
  put(1);
  run_on(loop_, [&] { store_.holds_leases = true; });
  support::BlockingThread waiting;
  std::stop_source stop;
  Status status;
  std::thread thread([&] {
    waiting.begin();
    status = heap_->create(kHalfSlab, {}, soon(), stop.get_token()).status();
  });
  EXPECT_TRUE(comes_true(loop_, [&] { return store_.held.size() == 1; }));
  EXPECT_TRUE(waiting.is_blocked());
  stop.request_stop();
  thread.join();
  EXPECT_EQ(status.code(), ErrorCode::kCancelled);
  run_on(loop_, [&] { store_.grant(); });
  EXPECT_TRUE(comes_true(loop_, [&] { return store_.given_back == Extents{store_.last}; }))
      << "what came too late is not lost";
}

TEST_F(SharedHeapTest, GivesBackWhatIsEmptyWhenItsClientGoes) {
  const ObjectLocation kept = put(kHalfSlab);
  const ObjectLocation small = put(1);
  heap_->free(small);
  (void)told();
  heap_->retire();
  EXPECT_TRUE(comes_true(loop_, [&] { return store_.given_back == Extents{small.extent}; }));
  EXPECT_EQ(get(kept).status().code(), ErrorCode::kCancelled);
  EXPECT_EQ(create(kHalfSlab).status().code(), ErrorCode::kCancelled);
}

TEST_F(SharedHeapTest, AViewOutlivesTheClient) {
  const ObjectLocation object = put(kHalfSlab, 'v');
  const Result<BytesView> view = get(object);
  heap_->retire();
  std::weak_ptr<SharedHeap> watched = heap_;
  heap_ = std::make_shared<SharedHeap>(store_.pair.near, ObjectClientOptions());
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(view->buffer().text().front(), 'v');
}

// -- What the store may move

TEST_F(SharedHeapTest, SurrendersWhatItDoesNotUseOldestFirst) {
  const ObjectLocation first = put(kHalfSlab), second = put(kHalfSlab), third = put(kHalfSlab);
  const ObjectLocation small = put(1);
  const Result<BytesView> view = get(second);
  auto unsealed = create(kHalfSlab);
  EXPECT_EQ(heap_->surrender(1), Extents{first.extent});
  EXPECT_EQ(heap_->surrender(kWholeSegment), Extents{third.extent})
      << "neither what is read, nor what is written, nor the open slab " << small.extent;
  EXPECT_EQ(heap_->surrender(kWholeSegment), Extents{});
}

TEST_F(SharedHeapTest, WhatItHasSurrenderedIsPinnedBeforeItIsRead) {
  const ObjectLocation object = put(kHalfSlab, 's');
  EXPECT_EQ(heap_->surrender(1), Extents{object.extent});
  // The store has moved it.
  run_on(loop_, [&] {
    ObjectLocation moved = object;
    const Extent place = store_.lease(object_bytes(kHalfSlab));
    moved.offset = place.range.begin + sizeof(ObjectHeader);
    store_.put(moved, std::string(kHalfSlab, 's'));
    store_.extents[object.extent] = {object.extent, place.range,
                                     object.offset - sizeof(ObjectHeader)};
    std::memset(store_.segment->writable() + object.offset - sizeof(ObjectHeader), 0, kPageBytes);
  });
  EXPECT_EQ(text_at(object), std::string(kHalfSlab, 's'));
  EXPECT_EQ(told().pinned, Extents{object.extent});
  EXPECT_EQ(told().unpinned, Extents{object.extent});
}

// -- Objects of others

TEST_F(SharedHeapTest, ViewsOfOneExtentShareAPin) {
  const ObjectLocation object = on_loop(loop_, [&] { return store_.add_object("of another"); });
  {
    const Result<BytesView> first = get(object);
    ASSERT_TRUE(first.ok()) << first.status().to_string();
    EXPECT_EQ(first->buffer().text(), "of another");
    std::optional<Result<BytesView>> second = get(object);
    EXPECT_EQ(told().pinned, Extents{object.extent});
    second.reset();
    EXPECT_TRUE(told().unpinned.empty());
  }
  EXPECT_EQ(told().unpinned, Extents{object.extent});
  EXPECT_EQ(text_at(object), "of another");
  EXPECT_EQ(told().pinned.size(), 2u);
}

TEST_F(SharedHeapTest, AllPinsThatTheStoreCountsAreGivenBack) {
  const ObjectLocation object = on_loop(loop_, [&] { return store_.add_object("of another"); });
  put(1);  // opened
  std::vector<Result<BytesView>> views;
  run_on(loop_, [&] {
    for (int i = 0; i < 2; ++i)
      heap_->get(object, soon(), [&](Result<BytesView> view) { views.push_back(std::move(view)); });
  });
  ASSERT_TRUE(comes_true(loop_, [&] { return views.size() == 2; }));
  EXPECT_EQ(told().pinned.size(), 2u) << "asked for before the first answer";
  views.pop_back();
  EXPECT_TRUE(told().unpinned.empty());
  views.clear();
  EXPECT_EQ(told().unpinned, (Extents{object.extent, object.extent}));
}

TEST_F(SharedHeapTest, AnObjectThatIsGoneIsNamed) {
  ObjectLocation gone = on_loop(loop_, [&] { return store_.add_object("gone"); });
  gone.extent = 77;
  const Status lost = get(gone).status();
  EXPECT_EQ(lost.code(), ErrorCode::kObjectLost);
  EXPECT_NE(lost.message().find(gone.id.hex()), std::string::npos) << lost.message();
  ObjectLocation of_another_segment = gone;
  of_another_segment.segment = 1;
  EXPECT_EQ(get(of_another_segment).status().code(), ErrorCode::kObjectLost);
}

TEST_F(SharedHeapTest, AStaleLocationGivesItsPinBack) {
  const ObjectLocation object = on_loop(loop_, [&] {
    ObjectLocation location = store_.add_object("freed");
    store_.segment->stamp(location, ObjectHeader::kFreed);
    return location;
  });
  EXPECT_EQ(get(object).status().code(), ErrorCode::kObjectLost);
  EXPECT_EQ(told().unpinned, Extents{object.extent});
}

TEST_F(SharedHeapTest, ObjectsOfOtherNodesAreFetched) {
  ObjectLocation far{ObjectId::random(), NodeId::random(), "10.0.0.9:1", 0, 5, 64, 4};
  run_on(loop_, [&] {
    ObjectLocation copy = store_.add_object("copy");
    copy.id = far.id;
    store_.put(copy, "copy");
    store_.fetch_answer = object_wire::encode_reply(copy);
  });
  EXPECT_EQ(text_at(far), "copy");
  EXPECT_EQ(told().unpinned.size(), 1u) << "an answer to a fetch has a pin";
  run_on(loop_, [&] {
    ObjectLocation outside = far;
    outside.offset = kWholeSegment;
    store_.fetch_answer = object_wire::encode_reply(outside);
  });
  EXPECT_EQ(get(far).status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace runtime
