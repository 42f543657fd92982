#include "runtime/store/object_location.h"

#include "runtime/store/segment.h"
#include "runtime/transport/capnp_codec.h"

namespace runtime {

void ObjectLocation::write(schema::ObjectLocation::Builder out) const {
  out.setObjectId(to_data(id));
  out.setNodeId(to_data(node));
  out.setEndpoint(to_text(endpoint));
  out.setSegment(segment);
  out.setExtent(extent);
  out.setOffset(offset);
  out.setSize(size);
}

Result<ObjectLocation> ObjectLocation::read(schema::ObjectLocation::Reader in) {
  auto id = to_id<ObjectId>(in.getObjectId());
  auto node = to_id<NodeId>(in.getNodeId());
  if (!id.ok()) return id.status().with_context("object location");
  if (!node.ok()) return node.status().with_context("object location");
  ObjectLocation location;
  location.id = *id;
  location.node = *node;
  location.endpoint = to_string(in.getEndpoint());
  location.segment = in.getSegment();
  location.extent = in.getExtent();
  location.offset = in.getOffset();
  location.size = in.getSize();
  if (location.offset % kObjectAlignment != 0)
    return invalid_argument("object location: offset is not aligned");
  return location;
}

}  // namespace runtime
