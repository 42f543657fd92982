#include "runtime/store/object_wire.h"

#include <utility>

#include "runtime/schema/object.capnp.h"
#include "runtime/transport/capnp_codec.h"

namespace runtime::object_wire {

namespace {

using RequestBuilder = schema::ObjectRequest::Builder;

void fill_list(capnp::List<std::uint64_t>::Builder out, const std::vector<std::uint64_t>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) out.set(static_cast<unsigned>(i), values[i]);
}

std::vector<std::uint64_t> read_list(capnp::List<std::uint64_t>::Reader in) {
  std::vector<std::uint64_t> values;
  values.reserve(in.size());
  for (std::uint64_t value : in) values.push_back(value);
  return values;
}

void fill(RequestBuilder out, const Open&) { out.setOpen(); }
void fill(RequestBuilder out, const Lease& lease) {
  out.setLease(lease.bytes);
  out.setWaitMs(lease.wait_ms);
}
void fill(RequestBuilder out, const GiveBack& back) {
  fill_list(out.initGiveBack(static_cast<unsigned>(back.extents.size())), back.extents);
}
void fill(RequestBuilder out, const Pin& pin) {
  out.setPin(pin.extent);
  out.setWaitMs(pin.wait_ms);
}
void fill(RequestBuilder out, const Unpin& unpin) {
  fill_list(out.initUnpin(static_cast<unsigned>(unpin.extents.size())), unpin.extents);
}
void fill(RequestBuilder out, const Fetch& fetch) {
  fetch.location.write(out.initFetch());
  out.setWaitMs(fetch.wait_ms);
}
void fill(RequestBuilder out, const Surrender& surrender) { out.setSurrender(surrender.bytes); }
void fill(RequestBuilder out, const Read& read) {
  auto group = out.initRead();
  read.location.write(group.initLocation());
  group.setFrom(read.from);
  group.setLength(read.length);
}

void fill_locations(capnp::List<schema::ObjectLocation>::Builder out,
                    const std::vector<ObjectLocation>& locations) {
  for (unsigned i = 0; i < out.size(); ++i) locations[i].write(out[i]);
}
unsigned count_of(const auto& container) { return static_cast<unsigned>(container.size()); }

void fill(RequestBuilder out, const Keep& keep) {
  fill_locations(out.initKeep(count_of(keep.locations)), keep.locations);
}
void fill(RequestBuilder out, const Release& release) {
  fill_locations(out.initRelease(count_of(release.locations)), release.locations);
}
void fill(RequestBuilder out, const Hold& hold) {
  fill_locations(out.initHold(count_of(hold.locations)), hold.locations);
}
void fill(RequestBuilder out, const Unhold& unhold) {
  fill_locations(out.initUnhold(count_of(unhold.locations)), unhold.locations);
}
void fill(RequestBuilder out, const Report&) { out.setReport(); }
void fill(RequestBuilder out, const Source& source) {
  auto group = out.initSource();
  source.location.write(group.initLocation());
  group.setEndpoint(to_text(source.endpoint));
  group.setFailed(to_text(source.failed));
}
void fill(RequestBuilder out, const Ended& ended) {
  auto list = out.initEnded(count_of(ended.objects));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, to_data(ended.objects[i]));
}

void fill(RequestBuilder out, const Remake& remake) {
  auto group = out.initRemake();
  remake.location.write(group.initLocation());
  group.setKeeper(to_text(remake.keeper));
}

void fill(RequestBuilder out, const TakeOver& take) { take.location.write(out.initTakeOver()); }
void fill(RequestBuilder out, const Evacuate& evacuate) { out.setEvacuate(to_data(evacuate.node)); }

using ReplyBuilder = schema::ObjectReply::Builder;

void fill(ReplyBuilder out, const Done&) { out.setDone(); }
void fill(ReplyBuilder out, const Data&) { out.setData(); }
void fill(ReplyBuilder out, const ObjectLocation& location) { location.write(out.initLocation()); }
void fill(ReplyBuilder out, const Extent& extent) {
  auto inner = out.initExtent();
  inner.setExtent(extent.id);
  inner.setOffset(extent.range.begin);
  inner.setSize(extent.range.size);
  inner.setHome(extent.home);
}
void fill(ReplyBuilder out, const Extents& extents) {
  fill_list(out.initExtents(static_cast<unsigned>(extents.extents.size())), extents.extents);
}
void fill(ReplyBuilder out, const StoreInfo& info) {
  auto store = out.initStore();
  store.setNodeId(to_data(info.node));
  store.setEndpoint(to_text(info.endpoint));
  store.setSegment(info.segment);
  store.setSegmentBytes(info.segment_bytes);
  store.setSlabBytes(info.slab_bytes);
}

void fill(ReplyBuilder out, const SourceFound& found) { out.setSource(to_text(found.endpoint)); }
void fill(ReplyBuilder out, const Evacuated& evacuated) { out.setFailed(evacuated.failed); }
void fill(ReplyBuilder out, const ProcessReport& report) {
  auto to = out.initReport();
  to.setInlineObjects(report.inline_objects);
  auto list = to.initObjects(count_of(report.objects));
  for (unsigned i = 0; i < list.size(); ++i) {
    const ProcessObject& object = report.objects[i];
    object.location.write(list[i].initLocation());
    list[i].setOwned(object.owned);
    list[i].setHandles(object.handles);
    list[i].setLent(object.lent);
    list[i].setInFlight(object.in_flight);
    list[i].setHeld(object.held);
    list[i].setAgeMs(object.age_ms);
  }
}

Status read_locations(capnp::List<schema::ObjectLocation>::Reader in,
                      std::vector<ObjectLocation>& out) {
  out.reserve(in.size());
  for (auto from : in) {
    auto location = ObjectLocation::read(from);
    if (!location.ok()) return location.status();
    out.push_back(std::move(*location));
  }
  return {};
}

Status read_report(schema::ProcessReport::Reader in, ProcessReport& out) {
  out.inline_objects = in.getInlineObjects();
  out.objects.reserve(in.getObjects().size());
  for (auto from : in.getObjects()) {
    auto location = ObjectLocation::read(from.getLocation());
    if (!location.ok()) return location.status();
    out.objects.push_back({std::move(*location), from.getOwned(), from.getHandles(), from.getLent(),
                           from.getInFlight(), from.getHeld(), from.getAgeMs()});
  }
  return {};
}

Status read_request(schema::ObjectRequest::Reader in, Request& out) {
  auto location_into = [](schema::ObjectLocation::Reader from, ObjectLocation& to) -> Status {
    auto location = ObjectLocation::read(from);
    if (!location.ok()) return location.status();
    to = std::move(*location);
    return {};
  };
  switch (in.which()) {
    case schema::ObjectRequest::OPEN: out = Open{}; return {};
    case schema::ObjectRequest::LEASE: out = Lease{in.getLease(), in.getWaitMs()}; return {};
    case schema::ObjectRequest::GIVE_BACK: out = GiveBack{read_list(in.getGiveBack())}; return {};
    case schema::ObjectRequest::PIN: out = Pin{in.getPin(), in.getWaitMs()}; return {};
    case schema::ObjectRequest::UNPIN: out = Unpin{read_list(in.getUnpin())}; return {};
    case schema::ObjectRequest::FETCH: {
      Fetch& fetch = out.emplace<Fetch>();
      fetch.wait_ms = in.getWaitMs();
      return location_into(in.getFetch(), fetch.location);
    }
    case schema::ObjectRequest::SURRENDER: out = Surrender{in.getSurrender()}; return {};
    case schema::ObjectRequest::KEEP:
      return read_locations(in.getKeep(), out.emplace<Keep>().locations);
    case schema::ObjectRequest::RELEASE:
      return read_locations(in.getRelease(), out.emplace<Release>().locations);
    case schema::ObjectRequest::HOLD:
      return read_locations(in.getHold(), out.emplace<Hold>().locations);
    case schema::ObjectRequest::UNHOLD:
      return read_locations(in.getUnhold(), out.emplace<Unhold>().locations);
    case schema::ObjectRequest::REPORT: out = Report{}; return {};
    case schema::ObjectRequest::SOURCE: {
      Source& source = out.emplace<Source>();
      source.endpoint = to_string(in.getSource().getEndpoint());
      source.failed = to_string(in.getSource().getFailed());
      return location_into(in.getSource().getLocation(), source.location);
    }
    case schema::ObjectRequest::ENDED: {
      Ended& ended = out.emplace<Ended>();
      for (capnp::Data::Reader from : in.getEnded()) {
        auto id = to_id<ObjectId>(from);
        if (!id.ok()) return id.status();
        ended.objects.push_back(*id);
      }
      return {};
    }
    case schema::ObjectRequest::REMAKE: {
      Remake& remake = out.emplace<Remake>();
      remake.keeper = to_string(in.getRemake().getKeeper());
      return location_into(in.getRemake().getLocation(), remake.location);
    }
    case schema::ObjectRequest::TAKE_OVER:
      return location_into(in.getTakeOver(), out.emplace<TakeOver>().location);
    case schema::ObjectRequest::EVACUATE: {
      auto node = to_id<NodeId>(in.getEvacuate());
      if (!node.ok()) return node.status();
      out = Evacuate{*node};
      return {};
    }
    case schema::ObjectRequest::READ: {
      Read& read = out.emplace<Read>();
      read.from = in.getRead().getFrom();
      read.length = in.getRead().getLength();
      return location_into(in.getRead().getLocation(), read.location);
    }
  }
  return unimplemented("object request of unknown kind " +
                       std::to_string(static_cast<int>(in.which())));
}

Status read_reply(schema::ObjectReply::Reader in, Reply& out) {
  if (in.getCode() != 0)
    return Status(error_code_from_wire(in.getCode()), to_string(in.getMessage()));
  switch (in.which()) {
    case schema::ObjectReply::DONE: out = Done{}; return {};
    case schema::ObjectReply::DATA: out = Data{}; return {};
    case schema::ObjectReply::STORE: {
      auto store = in.getStore();
      auto node = to_id<NodeId>(store.getNodeId());
      if (!node.ok()) return node.status();
      out = StoreInfo{*node, to_string(store.getEndpoint()), store.getSegment(),
                      store.getSegmentBytes(), store.getSlabBytes()};
      return {};
    }
    case schema::ObjectReply::EXTENT:
      out = Extent{in.getExtent().getExtent(),
                   {in.getExtent().getOffset(), in.getExtent().getSize()},
                   in.getExtent().getHome()};
      return {};
    case schema::ObjectReply::EXTENTS: out = Extents{read_list(in.getExtents())}; return {};
    case schema::ObjectReply::REPORT:
      return read_report(in.getReport(), out.emplace<ProcessReport>());
    case schema::ObjectReply::SOURCE: out = SourceFound{to_string(in.getSource())}; return {};
    case schema::ObjectReply::FAILED: out = Evacuated{in.getFailed()}; return {};
    case schema::ObjectReply::LOCATION: {
      auto location = ObjectLocation::read(in.getLocation());
      if (!location.ok()) return location.status();
      out = std::move(*location);
      return {};
    }
  }
  return unimplemented("object reply of unknown kind " +
                       std::to_string(static_cast<int>(in.which())));
}

}  // namespace

Buffer encode_request(const Request& request) {
  return encode<schema::ObjectRequest>(
      [&](RequestBuilder out) { std::visit([&](const auto& kind) { fill(out, kind); }, request); });
}

Message request_message(const Request& request) { return request_message(encode_request(request)); }

Message request_message(Buffer meta) {
  Message message;
  message.kind = FrameKind::kObject;
  message.meta = std::move(meta);
  return message;
}

Result<Request> decode_request(const Buffer& meta) {
  Request request;
  Status status = decode<schema::ObjectRequest>(
      meta, "object request",
      [&](schema::ObjectRequest::Reader in) { return read_request(in, request); });
  if (!status.ok()) return status;
  return request;
}

Buffer encode_reply(const Reply& reply) {
  return encode<schema::ObjectReply>(
      [&](ReplyBuilder out) { std::visit([&](const auto& kind) { fill(out, kind); }, reply); });
}

Buffer encode_failure(const Status& status) {
  return encode<schema::ObjectReply>([&](ReplyBuilder out) {
    out.setCode(static_cast<std::uint16_t>(status.code()));
    out.setMessage(to_text(status.message()));
  });
}

Result<Reply> decode_reply(const Buffer& meta) {
  Reply reply;
  Status status = decode<schema::ObjectReply>(
      meta, "object reply", [&](schema::ObjectReply::Reader in) { return read_reply(in, reply); });
  if (!status.ok()) return status;
  return reply;
}

}  // namespace runtime::object_wire
