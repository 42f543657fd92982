#include "runtime/object/object_wire.h"

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
void fill(RequestBuilder out, const GiveBack& back) { fill_list(out.initGiveBack(static_cast<unsigned>(back.extents.size())), back.extents); }
void fill(RequestBuilder out, const Pin& pin) {
  out.setPin(pin.extent);
  out.setWaitMs(pin.wait_ms);
}
void fill(RequestBuilder out, const Unpin& unpin) { fill_list(out.initUnpin(static_cast<unsigned>(unpin.extents.size())), unpin.extents); }
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

Status read_request(schema::ObjectRequest::Reader in, Request& out) {
  auto location_into = [](schema::ObjectLocation::Reader from, ObjectLocation& to) -> Status {
    auto location = ObjectLocation::read(from);
    if (!location.ok()) return location.status();
    to = std::move(*location);
    return {};
  };
  switch (in.which()) {
    case schema::ObjectRequest::OPEN:
      out = Open{};
      return {};
    case schema::ObjectRequest::LEASE:
      out = Lease{in.getLease(), in.getWaitMs()};
      return {};
    case schema::ObjectRequest::GIVE_BACK:
      out = GiveBack{read_list(in.getGiveBack())};
      return {};
    case schema::ObjectRequest::PIN:
      out = Pin{in.getPin(), in.getWaitMs()};
      return {};
    case schema::ObjectRequest::UNPIN:
      out = Unpin{read_list(in.getUnpin())};
      return {};
    case schema::ObjectRequest::FETCH: {
      Fetch& fetch = out.emplace<Fetch>();
      fetch.wait_ms = in.getWaitMs();
      return location_into(in.getFetch(), fetch.location);
    }
    case schema::ObjectRequest::SURRENDER:
      out = Surrender{in.getSurrender()};
      return {};
    case schema::ObjectRequest::READ: {
      Read& read = out.emplace<Read>();
      read.from = in.getRead().getFrom();
      read.length = in.getRead().getLength();
      return location_into(in.getRead().getLocation(), read.location);
    }
  }
  return unimplemented("object request of unknown kind " + std::to_string(static_cast<int>(in.which())));
}

Status read_reply(schema::ObjectReply::Reader in, Reply& out) {
  if (in.getCode() != 0) return Status(error_code_from_wire(in.getCode()), to_string(in.getMessage()));
  switch (in.which()) {
    case schema::ObjectReply::DONE:
      out = Done{};
      return {};
    case schema::ObjectReply::DATA:
      out = Data{};
      return {};
    case schema::ObjectReply::STORE: {
      auto store = in.getStore();
      auto node = to_id<NodeId>(store.getNodeId());
      if (!node.ok()) return node.status();
      out = StoreInfo{*node, to_string(store.getEndpoint()), store.getSegment(), store.getSegmentBytes(), store.getSlabBytes()};
      return {};
    }
    case schema::ObjectReply::EXTENT:
      out = Extent{in.getExtent().getExtent(), {in.getExtent().getOffset(), in.getExtent().getSize()}, in.getExtent().getHome()};
      return {};
    case schema::ObjectReply::EXTENTS:
      out = Extents{read_list(in.getExtents())};
      return {};
    case schema::ObjectReply::LOCATION: {
      auto location = ObjectLocation::read(in.getLocation());
      if (!location.ok()) return location.status();
      out = std::move(*location);
      return {};
    }
  }
  return unimplemented("object reply of unknown kind " + std::to_string(static_cast<int>(in.which())));
}

}  // namespace

Buffer encode_request(const Request& request) {
  return encode<schema::ObjectRequest>([&](RequestBuilder out) { std::visit([&](const auto& kind) { fill(out, kind); }, request); });
}

Result<Request> decode_request(const Buffer& meta) {
  Request request;
  Status status = decode<schema::ObjectRequest>(meta, "object request",
                                                [&](schema::ObjectRequest::Reader in) { return read_request(in, request); });
  if (!status.ok()) return status;
  return request;
}

Buffer encode_reply(const Reply& reply) {
  return encode<schema::ObjectReply>([&](ReplyBuilder out) { std::visit([&](const auto& kind) { fill(out, kind); }, reply); });
}

Buffer encode_failure(const Status& status) {
  return encode<schema::ObjectReply>([&](ReplyBuilder out) {
    out.setCode(static_cast<std::uint16_t>(status.code()));
    out.setMessage(to_text(status.message()));
  });
}

Result<Reply> decode_reply(const Buffer& meta) {
  Reply reply;
  Status status =
      decode<schema::ObjectReply>(meta, "object reply", [&](schema::ObjectReply::Reader in) { return read_reply(in, reply); });
  if (!status.ok()) return status;
  return reply;
}

}  // namespace runtime::object_wire
