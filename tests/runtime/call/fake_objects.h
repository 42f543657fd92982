// The objects of a process without a node: a store in memory, and fakes of what makes references
// known.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/call/blocked_calls.h"
#include "runtime/call/call_wire.h"
#include "runtime/call/caller_context.h"
#include "runtime/call/object_context.h"
#include "runtime/call/object_state.h"
#include "runtime/call/stored_object.h"
#include "runtime/codec/codec.h"
#include "runtime/transport/event_loop.h"

namespace runtime::test {

/// An int as the small value of an object.
inline ObjectValue small_value(int number) {
  Encoder encoder;
  encode_value(encoder, number);
  ObjectValue value;
  value.bytes = encoder.to_buffer();
  return value;
}

/// Some place, on some node.
inline ObjectLocation some_location(std::uint64_t size = 3) {
  ObjectLocation location;
  location.id = ObjectId::random();
  location.node = NodeId::random();
  location.endpoint = "10.0.0.2:1";
  location.size = size;
  return location;
}

/// Bytes by place; what is at no place is lost. One thread at a time.
class FakeStore final : public ObjectAccess {
 public:
  bool is_forked() const override { return forked; }
  Result<BytesView> get(const ObjectLocation& location, Deadline) override {
    ++reads;
    if (!failure.ok()) return failure;
    const auto found = bytes.find(location.extent);
    if (found == bytes.end()) return object_lost("object x is lost: its node is gone");
    return BytesView(location.id, Buffer::copy_of(std::string_view(found->second)));
  }
  void get(const ObjectLocation& location, Deadline deadline,
           UniqueFunction<void(Result<BytesView>)> done) override {
    done(get(location, deadline));
  }
  void free(const ObjectLocation& location) override { freed.push_back(location); }
  void borrow(const ObjectLocation& location) override { borrowed.push_back(location); }
  void unborrow(const ObjectLocation& location) override { unborrowed.push_back(location); }
  void take_over(const ObjectLocation&, Deadline,
                 UniqueFunction<void(Result<ObjectLocation>)> done) override {
    done(taken_over);
  }

  /// A new place with these bytes.
  ObjectLocation put(const std::string& text) {
    ObjectLocation location = some_location(text.size());
    location.extent = ++extents_;
    bytes[location.extent] = text;
    return location;
  }
  void lose(const ObjectLocation& location) { bytes.erase(location.extent); }

  std::map<std::uint64_t, std::string> bytes;  // by extent
  Status failure;                              // of every read
  int reads = 0;
  bool forked = false;
  std::vector<ObjectLocation> freed, borrowed, unborrowed;
  Result<ObjectLocation> taken_over = unavailable("nothing is taken over");

 private:
  std::uint64_t extents_ = 0;
};

/// Notes what comes and goes.
class FakeRegister final : public ObjectRegister {
 public:
  void add(const std::shared_ptr<StoredObject>&, const ObjectLocation& location,
           bool owned) override {
    present[location.id] = owned;
  }
  void remove(const ObjectLocation& location, bool owned) override {
    const auto found = present.find(location.id);
    ASSERT_NE(found, present.end());
    EXPECT_EQ(found->second, owned);
    present.erase(found);
  }

  std::map<ObjectId, bool> present;  // whether they are owned
};

/// Notes what messages refer to, and what is to be made again.
class FakeReferences final : public ReferenceMaker {
 public:
  std::shared_ptr<StoredObject> borrow(ObjectLocation location, bool indirect) override {
    borrowed.push_back({location, indirect});
    return StoredObject::make(
        store, objects, std::move(location),
        indirect ? StoredObject::Kind::kPassedOn : StoredObject::Kind::kBorrowed);
  }
  void borrow_confirmed(const ObjectLocation& location, Deadline,
                        UniqueFunction<void(Result<std::shared_ptr<StoredObject>>)> done) override {
    asked.push_back(location);
    if (gone.contains(location.node)) return done(object_lost("its node is gone"));
    done(StoredObject::make(store, objects, location, StoredObject::Kind::kConfirmed));
  }
  void remake(const ObjectLocation& lost, const std::string& keeper, Deadline,
              UniqueFunction<void(Result<ObjectLocation>)> done) override {
    remakes.push_back({lost, keeper, std::move(done)});
  }
  std::shared_ptr<ActorClient> client_for(const ActorAddress& address) override {
    addresses.push_back(address);
    return nullptr;
  }

  struct Borrowed {
    ObjectLocation location;
    bool indirect;
  };
  struct Remake {
    ObjectLocation lost;
    std::string keeper;
    UniqueFunction<void(Result<ObjectLocation>)> done;
  };
  const std::shared_ptr<FakeStore> store = std::make_shared<FakeStore>();
  const std::shared_ptr<FakeRegister> objects = std::make_shared<FakeRegister>();
  std::vector<Borrowed> borrowed;
  std::vector<ObjectLocation> asked;  // by borrow_confirmed(), as is the next
  std::set<NodeId> gone;
  std::vector<Remake> remakes;
  std::vector<ActorAddress> addresses;  // of handles
};

/// What an ObjectContext needs.
class FakeObjectContext {
 public:
  explicit FakeObjectContext(EventLoop& loop)
      : context_(new ObjectContext{loop, blocked_calls, shut_down, references}) {}
  FakeObjectContext(const FakeObjectContext&) = delete;
  FakeObjectContext& operator=(const FakeObjectContext&) = delete;

  const ObjectContextPtr& get() const { return context_; }

  BlockedCalls blocked_calls{77};
  std::atomic<bool> shut_down = false;
  FakeReferences references;

 private:
  const ObjectContextPtr context_;
};

/// The objects of calls, all of them as bytes.
class FakeCallObjects final : public CallObjects {
 public:
  /// Null: objects of no process.
  explicit FakeCallObjects(ObjectContextPtr context = nullptr) : context_(std::move(context)) {}

  ObjectStatePtr pending() override { return std::make_shared<ObjectState>(context_); }
  Result<ObjectValue> store(Encoder& encoder, Deadline, const std::stop_token&) override {
    if (!full.ok()) return full;
    ObjectValue value;
    value.bytes = encoder.to_buffer();
    value.refs = referred_objects(encoder.take_refs());
    return value;
  }
  Status decode_reply(const Buffer& meta, Buffer payload,
                      const std::function<std::shared_ptr<const void>()>& make_loan,
                      CallReply* reply, ObjectValue* value) override {
    return runtime::decode_reply(meta, std::move(payload), context_, make_loan, reply, value);
  }
  Result<ObjectValue> decode_stream_item(
      const Buffer& meta, Buffer payload,
      const std::function<std::shared_ptr<const void>(std::uint64_t)>& make_loan) override {
    return runtime::decode_stream_item(meta, std::move(payload), context_, make_loan);
  }
  void linger(std::vector<ObjectValue> lent) override {
    lingering += static_cast<int>(lent.size());
  }

  Status full;  // why nothing can be stored
  std::atomic<int> lingering = 0;

 private:
  const ObjectContextPtr context_;
};

}  // namespace runtime::test
