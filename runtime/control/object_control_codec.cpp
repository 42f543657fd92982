#include "runtime/control/object_control_codec.h"

#include <algorithm>

#include "runtime/control/schema_values.h"

namespace runtime::schema_values {

namespace {

ObjectLocation load_location(schema::ObjectLocation::Reader from) {
  auto location = ObjectLocation::read(from);
  KJ_REQUIRE(location.ok(), "a malformed location");
  return std::move(*location);
}

void store_object(const ObjectInfo& from, schema::ObjectInfo::Builder to) {
  to.setObjectId(data(from.id));
  to.setNode(data(from.node));
  to.setSize(from.size);
  to.setPlace(static_cast<std::uint16_t>(from.place));
  to.setOwnerNode(data(from.owner_node));
  to.setOwnerPid(from.owner_pid);
  to.setOwner(text(from.owner));
  to.setAgeMs(static_cast<std::uint64_t>(std::max<std::int64_t>(0, from.age.count())));
  to.setHandles(from.handles);
  to.setLent(from.lent);
  to.setInFlight(from.in_flight);
  to.setHeld(from.held);
  to.setReaders(from.readers);
  auto borrowers = to.initBorrowers(count(from.borrowers));
  for (unsigned i = 0; i < borrowers.size(); ++i) {
    borrowers[i].setNode(data(from.borrowers[i].node));
    borrowers[i].setPid(from.borrowers[i].pid);
    borrowers[i].setHandles(from.borrowers[i].handles);
    borrowers[i].setName(text(from.borrowers[i].name));
  }
  store(from.published, to.initPublished(count(from.published)));
  store_ids(from.copies, to.initCopies(count(from.copies)));
}

ObjectInfo load_object(schema::ObjectInfo::Reader from) {
  ObjectInfo to;
  to.id = load_id<ObjectId>(from.getObjectId());
  to.node = load_id<NodeId>(from.getNode());
  to.size = from.getSize();
  to.place = from.getPlace() <= static_cast<std::uint16_t>(ObjectPlace::kHead)
                 ? static_cast<ObjectPlace>(from.getPlace())
                 : ObjectPlace::kUnknown;
  to.owner_node = load_id<NodeId>(from.getOwnerNode());
  to.owner_pid = from.getOwnerPid();
  to.owner = load_text(from.getOwner());
  to.age = std::chrono::milliseconds(std::min<std::uint64_t>(from.getAgeMs(), 1ull << 60));
  to.handles = from.getHandles();
  to.lent = from.getLent();
  to.in_flight = from.getInFlight();
  to.held = from.getHeld();
  to.readers = from.getReaders();
  for (auto borrower : from.getBorrowers()) {
    to.borrowers.push_back({load_id<NodeId>(borrower.getNode()), borrower.getPid(),
                            borrower.getHandles(), load_text(borrower.getName())});
  }
  to.published = load(from.getPublished());
  for (capnp::Data::Reader copy : from.getCopies()) to.copies.push_back(load_id<NodeId>(copy));
  return to;
}

void store_store(const StoreInfo& from, schema::StoreInfo::Builder to) {
  to.setNode(data(from.node));
  to.setCapacityBytes(from.capacity_bytes);
  to.setLeasedBytes(from.leased_bytes);
  to.setOrphanedBytes(from.orphaned_bytes);
  to.setReplicaBytes(from.replica_bytes);
  to.setPublishedBytes(from.published_bytes);
  to.setSpilledBytes(from.spilled_bytes);
  to.setSentBytes(from.sent_bytes);
  to.setFetchedBytes(from.fetched_bytes);
  to.setPins(from.pins);
  to.setBorrows(from.borrows);
  to.setInlineObjects(from.inline_objects);
}

StoreInfo load_store(schema::StoreInfo::Reader from) {
  StoreInfo to;
  to.node = load_id<NodeId>(from.getNode());
  to.capacity_bytes = from.getCapacityBytes();
  to.leased_bytes = from.getLeasedBytes();
  to.orphaned_bytes = from.getOrphanedBytes();
  to.replica_bytes = from.getReplicaBytes();
  to.published_bytes = from.getPublishedBytes();
  to.spilled_bytes = from.getSpilledBytes();
  to.sent_bytes = from.getSentBytes();
  to.fetched_bytes = from.getFetchedBytes();
  to.pins = from.getPins();
  to.borrows = from.getBorrows();
  to.inline_objects = from.getInlineObjects();
  return to;
}

/// One request's body; an overload per kind.
struct ObjectRequestWriter {
  schema::ObjectControl::Builder to;

  void operator()(const control::Publish& body) {
    auto publish = to.initPublish();
    publish.setNameSpace(text(body.name_space));
    publish.setName(text(body.name));
    publish.setVersion(body.version);
    publish.setKeepLast(body.keep_last);
    publish.setCopies(body.copies);
    store_value(body.value, publish.initValue());
    publish.setType(text(body.type));
  }
  void operator()(const control::FindPublished& body) {
    auto find = to.initFindPublished();
    find.setNameSpace(text(body.name_space));
    find.setName(text(body.name));
    find.setVersion(body.version);
    find.setExactly(body.exactly);
    find.setWait(body.wait);
  }
  void operator()(const control::Unpublish& body) {
    auto unpublish = to.initUnpublish();
    unpublish.setNameSpace(text(body.name_space));
    unpublish.setName(text(body.name));
    unpublish.setVersion(body.version);
  }
  void operator()(const control::ListObjects&) { to.setListObjects(); }
  void operator()(const control::AdoptObject& body) { body.location.write(to.initAdopt()); }
  void operator()(const control::DropObject& body) { body.location.write(to.initDrop()); }
  void operator()(const control::FindObject& body) {
    auto find = to.initFindObject();
    find.setObject(data(body.object));
    find.setNode(data(body.node));
  }
};

struct ObjectAnswerWriter {
  schema::ObjectControlReply::Builder to;

  void operator()(const PublishedObject& object) {
    auto published = to.initPublished();
    published.setName(text(object.name));
    published.setVersion(object.version);
    store_value(object.value, published.initValue());
    published.setType(text(object.type));
  }
  void operator()(const ObjectLocation& location) { location.write(to.initLocation()); }
  void operator()(const ObjectList& list) {
    auto out = to.initList();
    auto objects = out.initObjects(count(list.objects));
    for (unsigned i = 0; i < objects.size(); ++i) store_object(list.objects[i], objects[i]);
    auto stores = out.initStores(count(list.stores));
    for (unsigned i = 0; i < stores.size(); ++i) store_store(list.stores[i], stores[i]);
    out.setTruncated(list.truncated);
    auto troubles = out.initTroubles(count(list.troubles));
    for (unsigned i = 0; i < troubles.size(); ++i) troubles.set(i, list.troubles[i]);
  }
};

}  // namespace

void store_value(const PublishedValue& from, schema::PublishedValue::Builder to) {
  if (const auto* bytes = std::get_if<std::string>(&from)) return to.setBytes(data(*bytes));
  const auto& copies = std::get<std::vector<ObjectLocation>>(from);
  auto list = to.initCopies(count(copies));
  for (unsigned i = 0; i < list.size(); ++i) copies[i].write(list[i]);
}

PublishedValue load_value(schema::PublishedValue::Reader from) {
  if (from.which() == schema::PublishedValue::BYTES) return load_bytes(from.getBytes());
  KJ_REQUIRE(from.which() == schema::PublishedValue::COPIES,
             "a published value of a newer version");
  std::vector<ObjectLocation> copies;
  for (auto copy : from.getCopies()) copies.push_back(load_location(copy));
  return copies;
}

void store(const ObjectControl& from, schema::ObjectControl::Builder to) {
  std::visit(ObjectRequestWriter{to}, from);
}

void store(const ObjectControlAnswer& from, schema::ObjectControlReply::Builder to) {
  std::visit(ObjectAnswerWriter{to}, from);
}

ObjectControl load(schema::ObjectControl::Reader from) {
  using Kind = schema::ObjectControl;
  switch (from.which()) {
    case Kind::PUBLISH: {
      auto body = from.getPublish();
      return control::Publish{load_text(body.getNameSpace()),
                              load_text(body.getName()),
                              body.getVersion(),
                              body.getKeepLast(),
                              body.getCopies(),
                              load_value(body.getValue()),
                              load_text(body.getType())};
    }
    case Kind::FIND_PUBLISHED: {
      auto body = from.getFindPublished();
      return control::FindPublished{load_text(body.getNameSpace()), load_text(body.getName()),
                                    body.getVersion(), body.getExactly(), body.getWait()};
    }
    case Kind::UNPUBLISH: {
      auto body = from.getUnpublish();
      return control::Unpublish{load_text(body.getNameSpace()), load_text(body.getName()),
                                body.getVersion()};
    }
    case Kind::LIST_OBJECTS: return control::ListObjects{};
    case Kind::ADOPT: return control::AdoptObject{load_location(from.getAdopt())};
    case Kind::DROP: return control::DropObject{load_location(from.getDrop())};
    case Kind::FIND_OBJECT:
      return control::FindObject{load_id<ObjectId>(from.getFindObject().getObject()),
                                 load_id<NodeId>(from.getFindObject().getNode())};
  }
  KJ_FAIL_REQUIRE("an object request of a newer version");
}

ObjectControlAnswer load(schema::ObjectControlReply::Reader from) {
  using Kind = schema::ObjectControlReply;
  switch (from.which()) {
    case Kind::PUBLISHED: {
      auto body = from.getPublished();
      return PublishedObject{load_text(body.getName()), body.getVersion(),
                             load_value(body.getValue()), load_text(body.getType())};
    }
    case Kind::LOCATION: return load_location(from.getLocation());
    case Kind::LIST: {
      ObjectList list;
      for (auto object : from.getList().getObjects()) list.objects.push_back(load_object(object));
      for (auto info : from.getList().getStores()) list.stores.push_back(load_store(info));
      list.truncated = from.getList().getTruncated();
      for (auto trouble : from.getList().getTroubles()) list.troubles.push_back(load_text(trouble));
      return list;
    }
  }
  KJ_FAIL_REQUIRE("an object reply of a newer version");
}

}  // namespace runtime::schema_values
