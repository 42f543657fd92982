// Objects that a store keeps in its own name: which bytes, how often, and until when.
#include "runtime/store/adopted_objects.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/runtime/store/other_store.h"

namespace runtime::object_detail {
namespace {

using namespace std::chrono_literals;

// A store of sixteen pages, with a process that makes objects and another node.
class AdoptedObjectsTest : public ::testing::Test {
 protected:
  static constexpr ExtentTable::Client kMaker = 7;
  static constexpr ExtentTable::Client kBorrower = 8;

  AdoptedObjectsTest() {
    options_.credentials.node = NodeId::random();
    options_.slab_bytes = 0;
    options_.find_moved = [this](const ObjectLocation& lost,
                                 const UniqueFunction<void(Result<ObjectLocation>)>&) {
      ADD_FAILURE() << lost.id.hex() << " is not looked for";
    };
    auto segment = Segment::create(16 * kPageBytes);
    EXPECT_TRUE(segment.ok()) << segment.status().to_string();
    memory_ = std::make_shared<StoreMemory>(loop_, *std::move(segment), options_);
    memory_->endpoint = "10.0.0.1:1";
    memory_->full = [](std::uint64_t) { return "the store is full"; };
  }
  ~AdoptedObjectsTest() override {
    run_on(loop_, [&] {
      memory_->line->stop();
      fetcher_->stop();
      peers_->stop();
      other_.close();
    });
    run_on(loop_, [] {});  // what that closed
    run_on(loop_, [&] { adopted_.reset(); });
  }

  /// With the options that are set by now.
  AdoptedObjects& adopted() {
    if (!adopted_) {
      fetcher_ = std::make_shared<Fetcher>(memory_, peers_, options_);
      const auto clients = std::make_shared<StoreClients>();
      borrowers_ =
          std::make_shared<Borrowers>(memory_, peers_, options_.credentials.node, clients, ended_);
      const auto pins = std::make_shared<ResidentPins>(memory_, nullptr, ended_);
      adopted_ = std::make_shared<AdoptedObjects>(memory_, fetcher_, borrowers_, pins, options_);
      borrowers_->on_returned([this](const ObjectLocation& location) {
        adopted_->returned(location);
        return true;
      });
    }
    return *adopted_;
  }
  /// An object at that place of an extent.
  ObjectLocation put(const Extent& extent, std::uint64_t at, const std::string& text) {
    ObjectLocation location{ObjectId::random(), options_.credentials.node,
                            "10.0.0.1:1",       0,
                            extent.id,          extent.range.begin + at + sizeof(ObjectHeader),
                            text.size()};
    std::memcpy(memory_->segment->writable() + location.offset, text.data(), text.size());
    memory_->segment->stamp(location, ObjectHeader::kSealed);
    return location;
  }
  /// One that is alone in its range.
  ObjectLocation put_alone(const std::string& text) {
    return put(*memory_->lease(object_bytes(text.size()), kMaker), 0, text);
  }
  ObjectLocation object_elsewhere() const {
    return {ObjectId::random(), NodeId::random(), other_.endpoint(), 0, 5, 64, 4};
  }
  std::string text_at(const ObjectLocation& location) const {
    auto bytes = memory_->segment->find(location, 0, memory_->segment->bytes());
    EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
    return bytes.ok() ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())
                      : "";
  }
  bool is_there(const ObjectLocation& location) const {
    return memory_->table.find(location.extent).has_value();
  }
  AdoptedObjects::Done note() {
    return [this](Result<ObjectLocation> kept) { kept_ = std::move(kept); };
  }
  /// Adopts it at once. On the loop.
  ObjectLocation adopt(const ObjectLocation& location) {
    kept_.reset();
    adopted().adopt(location, note());
    EXPECT_TRUE(kept_ && kept_->ok()) << (kept_ ? kept_->status().to_string() : "no answer");
    return kept_ ? kept_->value_or({}) : ObjectLocation();
  }
  /// The answer of one that takes its time. Not on the loop.
  Result<ObjectLocation> outcome() {
    EXPECT_TRUE(comes_true(loop_, [&] { return kept_.has_value(); }));
    return on_loop(loop_, [&] { return kept_.value_or(internal_error("no answer")); });
  }
  void serve(const std::string& text) {
    other_.next<object_wire::Read>();
    other_.answer(object_wire::encode_reply(object_wire::Data{}), Buffer::copy_of(text));
  }
  void refuse(const Status& why) {
    other_.next<object_wire::Read>();
    other_.answer(object_wire::encode_failure(why));
  }

  ObjectStoreOptions options_;
  EventLoop loop_;
  OtherStore other_{loop_};
  std::shared_ptr<StoreMemory> memory_;
  const std::shared_ptr<PeerLinks> peers_ =
      std::make_shared<PeerLinks>(loop_, OtherStore::credentials());
  const std::shared_ptr<EndedOwners> ended_ =
      std::make_shared<EndedOwners>(NodeId{}, [](pid_t) { return std::string("killed"); });
  std::shared_ptr<Fetcher> fetcher_;
  std::shared_ptr<Borrowers> borrowers_;
  std::optional<Result<ObjectLocation>> kept_;
  std::shared_ptr<AdoptedObjects> adopted_;
};

TEST_F(AdoptedObjectsTest, KeepsTheVeryBytesOfAnObjectThatIsAlone) {
  run_on(loop_, [&] {
    const ObjectLocation object = put_alone("four");
    EXPECT_EQ(adopt(object), object);
    EXPECT_EQ(adopted().all(), std::vector{object});
    ASSERT_NE(adopted().find(object.id), nullptr);
    EXPECT_EQ(memory_->table.pins(), 0u);
    memory_->table.drop(kMaker);
    EXPECT_TRUE(is_there(object)) << "it outlives its owner";
    EXPECT_EQ(text_at(object), "four");
    adopted().drop(object);
    EXPECT_FALSE(is_there(object));
    EXPECT_EQ(adopted().find(object.id), nullptr);
  });
}

TEST_F(AdoptedObjectsTest, CopiesAnObjectOutOfARangeThatOthersShare) {
  run_on(loop_, [&] {
    const Extent slab = *memory_->lease(2 * kPageBytes, kMaker);
    const ObjectLocation first = put(slab, 0, "first"), second = put(slab, 1024, "second");
    for (const ObjectLocation& object : {first, second}) {
      const ObjectLocation copy = adopt(object);
      EXPECT_EQ(copy.id, object.id);
      EXPECT_NE(copy.extent, slab.id);
      EXPECT_EQ(text_at(copy), text_at(object));
    }
    memory_->table.drop(kMaker);
    EXPECT_FALSE(memory_->table.find(slab.id)) << "the rest of the slab does not stay";
    EXPECT_EQ(adopted().all().size(), 2u);
    for (const ObjectLocation& copy : adopted().all()) adopted().drop(copy);
    EXPECT_EQ(memory_->table.used_bytes(), 0u);
  });
}

TEST_F(AdoptedObjectsTest, WhatIsKeptTwiceIsGivenUpTwice) {
  run_on(loop_, [&] {
    const ObjectLocation object = put_alone("four");
    adopt(object);
    adopt(object);
    EXPECT_EQ(adopted().all().size(), 1u);
    memory_->table.drop(kMaker);
    adopted().drop(object);
    EXPECT_TRUE(is_there(object)) << "it is published under another name";
    adopted().drop(object);
    EXPECT_FALSE(is_there(object));
    adopted().drop(object);
  });
}

TEST_F(AdoptedObjectsTest, ABorrowedObjectGoesWithItsLastBorrower) {
  run_on(loop_, [&] {
    const ObjectLocation object = put_alone("four"), other = put_alone("else");
    adopt(object);
    adopt(object);
    memory_->table.drop(kMaker);
    EXPECT_FALSE(adopted().returned(object)) << "it was not given up";
    borrowers_->add(kBorrower, object);
    adopted().drop(object);
    adopted().drop(object);
    adopted().drop(object);
    EXPECT_TRUE(is_there(object));
    borrowers_->client_ended(kBorrower);
    EXPECT_FALSE(is_there(object));
    EXPECT_FALSE(adopted().returned(object));
    EXPECT_FALSE(adopted().returned(other)) << "no store keeps it";
  });
}

TEST_F(AdoptedObjectsTest, AnObjectThatIsGoneIsNotKept) {
  run_on(loop_, [&] {
    ObjectLocation gone = put_alone("four");
    gone.extent += 100;
    adopted().adopt(gone, note());
    ASSERT_TRUE(kept_);
    EXPECT_EQ(kept_->status().code(), ErrorCode::kObjectLost);
    const ObjectLocation freed = put_alone("four");
    memory_->segment->stamp(freed, ObjectHeader::kFreed);
    adopted().adopt(freed, note());
    EXPECT_EQ(kept_->status().code(), ErrorCode::kObjectLost);
    EXPECT_EQ(memory_->table.pins(), 0u);
    EXPECT_TRUE(adopted().all().empty());
  });
}

TEST_F(AdoptedObjectsTest, ACopyWaitsForRoom) {
  ObjectLocation object;
  run_on(loop_, [&] {
    object = put(*memory_->lease(2 * kPageBytes, kMaker), 0, "four");
    const auto filler = memory_->lease(14 * kPageBytes, kBorrower);
    adopted().adopt(object, note());
    EXPECT_FALSE(kept_);
    EXPECT_TRUE(memory_->table.give_back(filler->id, kBorrower));
    memory_->changed();
    ASSERT_TRUE(kept_ && kept_->ok());
    EXPECT_EQ(text_at(**kept_), "four");
    EXPECT_EQ(memory_->table.pins(), 0u);
  });
}

TEST_F(AdoptedObjectsTest, ACopyThatFindsNoRoomInTimeFails) {
  options_.wait_max = 10ms;
  run_on(loop_, [&] {
    const ObjectLocation object = put(*memory_->lease(2 * kPageBytes, kMaker), 0, "four");
    (void)memory_->lease(14 * kPageBytes, kBorrower);
    adopted().adopt(object, note());
  });
  EXPECT_EQ(outcome().status(), resource_exhausted("the store is full"));
  run_on(loop_, [&] {
    EXPECT_EQ(memory_->table.pins(), 0u);
    EXPECT_TRUE(adopted().all().empty());
  });
}

TEST_F(AdoptedObjectsTest, WhatIsTakenOverIsKeptOnceMore) {
  run_on(loop_, [&] {
    const ObjectLocation object = put_alone("four");
    adopted().take_over(object, note());
    ASSERT_TRUE(kept_ && kept_->ok());
    EXPECT_EQ(**kept_, object);
    ObjectLocation elsewhere = object;  // as its borrower knows it
    elsewhere.node = NodeId::random();
    adopted().take_over(elsewhere, note());
    EXPECT_EQ(**kept_, object) << "nothing is fetched";
    memory_->table.drop(kMaker);
    adopted().drop(object);
    EXPECT_TRUE(is_there(object));
    adopted().drop(object);
    EXPECT_FALSE(is_there(object));
  });
}

// -- Objects of other nodes

TEST_F(AdoptedObjectsTest, KeepsACopyOfAnObjectOfAnotherNode) {
  const ObjectLocation far = object_elsewhere();
  run_on(loop_, [&] { adopted().adopt(far, note()); });
  serve("four");
  const Result<ObjectLocation> kept = outcome();
  ASSERT_TRUE(kept.ok()) << kept.status().to_string();
  run_on(loop_, [&] {
    EXPECT_EQ(kept->node, options_.credentials.node);
    EXPECT_EQ(text_at(*kept), "four");
    EXPECT_TRUE(fetcher_->copies().empty()) << "it makes no room for others";
    EXPECT_EQ(adopted().all(), std::vector{*kept});
    adopted().drop(*kept);
    EXPECT_EQ(memory_->table.used_bytes(), 0u);
  });
}

TEST_F(AdoptedObjectsTest, OneCopyIsKeptForAllThatAsk) {
  const ObjectLocation far = object_elsewhere();
  std::vector<Result<ObjectLocation>> kept;
  run_on(loop_, [&] {
    for (int i = 0; i < 2; ++i)
      adopted().adopt(far, [&](Result<ObjectLocation> here) { kept.push_back(std::move(here)); });
  });
  serve("four");
  ASSERT_TRUE(comes_true(loop_, [&] { return kept.size() == 2; }));
  run_on(loop_, [&] {
    ASSERT_TRUE(kept[0].ok() && kept[1].ok());
    EXPECT_EQ(*kept[0], *kept[1]);
    adopted().drop(*kept[0]);
    EXPECT_TRUE(is_there(*kept[0]));
    adopted().drop(*kept[0]);
    EXPECT_FALSE(is_there(*kept[0]));
  });
}

TEST_F(AdoptedObjectsTest, AnObjectOfADrainedNodeIsFetchedFromWhereItWent) {
  const ObjectLocation lost = object_elsewhere();
  ObjectLocation moved = lost;
  moved.node = NodeId::random();
  moved.extent = 6;
  options_.find_moved = [&](const ObjectLocation& asked,
                            UniqueFunction<void(Result<ObjectLocation>)> found) {
    EXPECT_EQ(asked, lost);
    found(moved);
  };
  run_on(loop_, [&] { adopted().fetch_moved(lost, deadline_after(20s), note()); });
  refuse(object_lost("its node has left"));
  EXPECT_EQ(other_.next<object_wire::Read>().location, moved);
  serve("four");
  EXPECT_TRUE(outcome().ok());
}

TEST_F(AdoptedObjectsTest, OneThatCameToThisNodeIsThere) {
  ObjectLocation here;
  options_.find_moved = [&](const ObjectLocation&,
                            UniqueFunction<void(Result<ObjectLocation>)> found) { found(here); };
  run_on(loop_, [&] {
    here = put_alone("four");
    adopted().fetch_moved(object_elsewhere(), deadline_after(20s), note());
  });
  refuse(object_lost("its node has left"));
  EXPECT_EQ(outcome().value_or({}), here);
}

TEST_F(AdoptedObjectsTest, OneThatWentNowhereIsLostForTheFirstReason) {
  const ObjectLocation lost = object_elsewhere();
  Result<ObjectLocation> answer = lost;
  options_.find_moved = [&](const ObjectLocation&,
                            UniqueFunction<void(Result<ObjectLocation>)> found) { found(answer); };
  for (const Result<ObjectLocation>& moved :
       {answer, Result<ObjectLocation>(not_found("no node has it"))}) {
    answer = moved;
    run_on(loop_, [&] {
      kept_.reset();
      adopted().fetch_moved(lost, deadline_after(20s), note());
    });
    refuse(object_lost("its node has left"));
    EXPECT_EQ(outcome().status(), object_lost("its node has left"));
  }
}

TEST_F(AdoptedObjectsTest, AnotherFailureIsNoReasonToLookElsewhere) {
  run_on(loop_, [&] { adopted().fetch_moved(object_elsewhere(), deadline_after(20s), note()); });
  refuse(resource_exhausted("no room to bring it back from disk"));
  EXPECT_EQ(outcome().status().code(), ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace runtime::object_detail
