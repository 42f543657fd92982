// The messages of kObject frames as plain structs; runtime/schema/object.capnp is the format.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/store/extent_table.h"
#include "runtime/store/object_location.h"
#include "runtime/transport/buffer.h"
#include "runtime/transport/frame.h"

namespace runtime::object_wire {

struct Open {};
struct Lease {
  std::uint64_t bytes = 0;
  std::uint64_t wait_ms = 0;
};
struct GiveBack {
  std::vector<std::uint64_t> extents;
};
struct Pin {
  std::uint64_t extent = 0;
  std::uint64_t wait_ms = 0;
};
struct Unpin {
  std::vector<std::uint64_t> extents;
};
struct Fetch {
  ObjectLocation location;
  std::uint64_t wait_ms = 0;
};
struct Read {
  ObjectLocation location;
  std::uint64_t from = 0;
  std::uint64_t length = 0;
};
struct Surrender {
  std::uint64_t bytes = 0;
};
/// I borrow these, from any lender.
struct Keep {
  std::vector<ObjectLocation> locations;
};
struct Release {
  std::vector<ObjectLocation> locations;
};
/// To the owner: a process of the cluster borrows these.
struct Hold {
  std::vector<ObjectLocation> locations;
};
struct Unhold {
  std::vector<ObjectLocation> locations;
};
struct Report {};
/// Whom to copy an object from.
struct Source {
  ObjectLocation location;
  std::string endpoint;  // the asker's
  std::string failed;    // the one named before, which did not do
};
/// Copies of these are of no use any more.
struct Ended {
  std::vector<ObjectId> objects;
};
/// What was there is lost: have it made again.
struct Remake {
  ObjectLocation location;
  std::string keeper;  // the node of the process that can
};
/// Its node is about to leave: keep it in the store's own name; the asker borrows what the answer
/// names.
struct TakeOver {
  ObjectLocation location;
};
/// To a process: take over what you refer to that lies on that node.
struct Evacuate {
  NodeId node;
};
using Request =
    std::variant<Open, Lease, GiveBack, Pin, Unpin, Fetch, Read, Surrender, Keep, Release, Hold,
                 Unhold, Report, Source, Ended, Remake, TakeOver, Evacuate>;

Buffer encode_request(const Request& request);
/// The frame of a request.
Message request_message(const Request& request);
/// The same of what encode_request() gave.
Message request_message(Buffer meta);
/// Errors: kInvalidArgument on malformed bytes, kUnimplemented on a request that this release does
/// not know.
Result<Request> decode_request(const Buffer& meta);

struct Done {};
struct StoreInfo {
  NodeId node;
  std::string endpoint;
  std::uint32_t segment = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t slab_bytes = 0;
};
struct Data {};
struct Extents {
  std::vector<std::uint64_t> extents;
};
/// What a process holds of one object.
struct ProcessObject {
  ObjectLocation location;
  bool owned = false;
  std::uint32_t handles = 0;
  std::uint32_t lent = 0;
  std::uint32_t in_flight = 0;
  std::uint32_t held = 0;
  std::uint64_t age_ms = 0;
};
struct ProcessReport {
  std::vector<ProcessObject> objects;
  std::uint64_t inline_objects = 0;
};
struct SourceFound {
  std::string endpoint;
};
/// How many objects could not be taken over.
struct Evacuated {
  std::uint64_t failed = 0;
};
using Reply = std::variant<Done, StoreInfo, Extent, ObjectLocation, Data, Extents, ProcessReport,
                           SourceFound, Evacuated>;

Buffer encode_reply(const Reply& reply);
Buffer encode_failure(const Status& status);
/// A failure that the peer sent comes back as it is. Own errors: kInvalidArgument on
/// malformed bytes.
Result<Reply> decode_reply(const Buffer& meta);

}  // namespace runtime::object_wire
