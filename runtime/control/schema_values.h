// The cluster's values to and from their Cap'n Proto form. Private to the codec: load() throws
// kj::Exception on malformed input, which control_codec.cpp turns into a Status.
#pragma once

#include <capnp/message.h>

#include "runtime/control/membership.h"
#include "runtime/control/token_state.h"
#include "runtime/schema/membership.capnp.h"

namespace runtime::schema_values {

template <class Tag>
capnp::Data::Reader data(const Id<Tag>& id) {
  return capnp::Data::Reader(id.bytes.data(), id.bytes.size());
}
inline capnp::Data::Reader data(const std::string& bytes) {
  return capnp::Data::Reader(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size());
}
/// A container's size as Cap'n Proto's builders take it.
unsigned count(const auto& container) { return static_cast<unsigned>(container.size()); }

inline capnp::Text::Reader text(const std::string& value) {
  return capnp::Text::Reader(value.c_str(), value.size());
}

template <class Tag>
void store_ids(const std::vector<Id<Tag>>& from, capnp::List<capnp::Data>::Builder to) {
  for (unsigned i = 0; i < to.size(); ++i) to.set(i, data(from[i]));
}

std::string load_text(capnp::Text::Reader reader);
std::string load_bytes(capnp::Data::Reader reader);

/// Empty data is the id "none"; any other length than 16 is malformed.
template <class IdType>
IdType load_id(capnp::Data::Reader reader) {
  IdType id;
  KJ_REQUIRE(reader.size() == 0 || reader.size() == id.bytes.size(), "an id has 16 bytes");
  std::copy(reader.begin(), reader.end(), id.bytes.begin());
  return id;
}

void store(const ResourceMap& from, capnp::List<schema::Amount>::Builder to);
ResourceMap load(capnp::List<schema::Amount>::Reader from);
void store(const Environment& from, capnp::List<schema::Pair>::Builder to);
Environment load(capnp::List<schema::Pair>::Reader from);
void store(const std::vector<std::string>& from, capnp::List<capnp::Text>::Builder to);
std::vector<std::string> load(capnp::List<capnp::Text>::Reader from);

void store(const std::vector<std::uint32_t>& from, capnp::List<std::uint32_t>::Builder to);
std::vector<std::uint32_t> load(capnp::List<std::uint32_t>::Reader from);

void store(const DriverInfo& from, schema::DriverInfo::Builder to);
void store(const ActorSpec& from, schema::ActorSpec::Builder to);
void store(const ActorAddress& from, schema::ActorAddress::Builder to);
void store(const DeathCause& from, schema::DeathCause::Builder to);
void store(const ActorState& from, schema::ActorState::Builder to);
void store(const GroupSpec& from, schema::GroupSpec::Builder to);
void store(const GroupState& from, schema::GroupState::Builder to);
void store(const NodeInfo& from, schema::NodeInfo::Builder to);
void store(const NodeDrain& from, schema::NodeDrain::Builder to);
void store(const TokenState& from, schema::TokenState::Builder to);
void store(const NodeDeparture& from, schema::NodeDeparture::Builder to);
void store(const JobInfo& from, schema::JobInfo::Builder to);
void store(const JobFile& from, schema::JobFile::Builder to);
void store(const ClusterState& from, schema::ClusterState::Builder to);
void store(const LogLines& from, schema::LogLines::Builder to);

DriverInfo load(schema::DriverInfo::Reader from);
ActorSpec load(schema::ActorSpec::Reader from);
ActorAddress load(schema::ActorAddress::Reader from);
DeathCause load(schema::DeathCause::Reader from);
ActorState load(schema::ActorState::Reader from);
GroupSpec load(schema::GroupSpec::Reader from);
GroupState load(schema::GroupState::Reader from);
NodeInfo load(schema::NodeInfo::Reader from);
NodeDrain load(schema::NodeDrain::Reader from);
/// Bounded, so that sums of what comes in do not overflow.
std::chrono::milliseconds load_milliseconds(std::uint64_t from);
TokenState load(schema::TokenState::Reader from);
NodeDeparture load(schema::NodeDeparture::Reader from);
JobInfo load(schema::JobInfo::Reader from);
JobFile load(schema::JobFile::Reader from);
JobOutcome load_outcome(std::uint16_t from);
ClusterState load(schema::ClusterState::Reader from);
LogLines load(schema::LogLines::Reader from);

template <class T, class ListBuilder>
void store_list(const std::vector<T>& from, ListBuilder to) {
  for (unsigned i = 0; i < from.size(); ++i) schema_values::store(from[i], to[i]);
}

template <class T, class ListReader>
std::vector<T> load_list(ListReader from) {
  std::vector<T> to;
  to.reserve(from.size());
  for (auto item : from) to.push_back(schema_values::load(item));
  return to;
}

}  // namespace runtime::schema_values
