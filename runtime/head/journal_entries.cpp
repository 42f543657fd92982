#include "runtime/head/journal_entries.h"

#include <cstdio>
#include <optional>

#include "runtime/control/object_control_codec.h"
#include "runtime/control/schema_values.h"
#include "runtime/schema/journal.capnp.h"
#include "runtime/transport/capnp_codec.h"

namespace runtime::journal {

namespace {

using schema_values::data;
using schema_values::load_bytes;
using schema_values::load_id;
using schema_values::load_text;
using schema_values::text;

/// Stores one entry; an overload per kind.
struct EntryWriter {
  schema::JournalEntry::Builder to;

  void operator()(const Token& entry) { schema_values::store(entry.state, to.initToken()); }
  void operator()(const Counters& entry) {
    auto counters = to.initCounters();
    counters.setIncarnation(entry.incarnation);
    counters.setNodesVersion(entry.nodes_version);
    counters.setOrder(entry.order);
  }
  void operator()(const Node& entry) { schema_values::store(entry.info, to.initNode()); }
  void operator()(const Job& entry) {
    auto job = to.initJob();
    schema_values::store(entry.info, job.initInfo());
    schema_values::store(entry.driver, job.initDriver());
    job.setEndedAs(entry.ended_as);
  }
  void operator()(const ActorSpecOf& entry) {
    auto spec = to.initActorSpec();
    spec.setJob(data(entry.job));
    schema_values::store(entry.spec, spec.initSpec());
  }
  void operator()(const ActorRow& entry) {
    auto row = to.initActor();
    row.setActor(data(entry.actor));
    row.setPhase(static_cast<std::uint16_t>(entry.phase));
    if (!entry.node.is_none()) row.setNode(data(entry.node));
    row.setIncarnation(entry.incarnation);
    row.setRestarts(entry.restarts);
    row.setEnding(entry.ending);
    row.setVersion(entry.version);
    if (entry.address != ActorAddress{}) schema_values::store(entry.address, row.initAddress());
    if (entry.death != DeathCause{}) schema_values::store(entry.death, row.initDeath());
    row.setDiedAs(entry.died_as);
    schema_values::store(entry.gpus, row.initGpus(static_cast<unsigned>(entry.gpus.size())));
    row.setMoving(entry.moving);
    row.setMoves(entry.moves);
  }
  void operator()(const ActorSaved& entry) {
    auto saved = to.initActorState();
    saved.setActor(data(entry.actor));
    saved.setState(data(entry.state));
  }
  void operator()(const Group& entry) { schema_values::store(entry.state, to.initGroup()); }
  void operator()(const Pair& entry) {
    auto pair = to.initPair();
    if (!entry.job.is_none()) pair.setJob(data(entry.job));
    pair.setKey(text(entry.key));
    pair.setValue(data(entry.value));
  }
  void operator()(const PublishedEntry& entry) {
    auto published = to.initPublished();
    published.setNameSpace(text(entry.name_space));
    published.setName(text(entry.name));
    published.setVersion(entry.version);
    schema_values::store_value(entry.value, published.initValue());
    published.setType(text(entry.type));
    published.setLoss(text(entry.loss));
  }
  void operator()(const Departure& entry) {
    schema_values::store(entry.departure, to.initDeparture());
  }
  void operator()(const Request& entry) {
    auto request = to.initRequest();
    request.setId(data(entry.record.id));
    request.setOrder(entry.record.order);
    request.setAtMs(entry.record.at_ms);
    request.setAbout(entry.record.about);
    request.setIsAnswered(entry.record.reply.has_value());
    if (entry.record.reply) request.setReply(data(*entry.record.reply));
  }
};

ActorRow load_row(schema::ActorRow::Reader from) {
  ActorRow row;
  row.actor = load_id<ActorId>(from.getActor());
  KJ_REQUIRE(from.getPhase() <= static_cast<std::uint16_t>(ActorPhase::kDead),
             "an unknown phase of an actor");
  row.phase = static_cast<ActorPhase>(from.getPhase());
  row.node = load_id<NodeId>(from.getNode());
  row.incarnation = from.getIncarnation();
  row.restarts = from.getRestarts();
  row.ending = from.getEnding();
  row.version = from.getVersion();
  if (from.hasAddress()) row.address = schema_values::load(from.getAddress());
  if (from.hasDeath()) row.death = schema_values::load(from.getDeath());
  row.died_as = from.getDiedAs();
  row.gpus = schema_values::load(from.getGpus());
  row.moving = from.getMoving();
  row.moves = from.getMoves();
  return row;
}

Entry load_entry(schema::JournalEntry::Reader from) {
  switch (from.which()) {
    case schema::JournalEntry::OBSOLETE_CLUSTER: break;
    case schema::JournalEntry::TOKEN: return Token{schema_values::load(from.getToken())};
    case schema::JournalEntry::COUNTERS: {
      auto counters = from.getCounters();
      return Counters{counters.getIncarnation(), counters.getNodesVersion(), counters.getOrder()};
    }
    case schema::JournalEntry::NODE: return Node{schema_values::load(from.getNode())};
    case schema::JournalEntry::JOB: {
      auto job = from.getJob();
      return Job{schema_values::load(job.getInfo()), schema_values::load(job.getDriver()),
                 job.getEndedAs()};
    }
    case schema::JournalEntry::ACTOR_SPEC: {
      auto spec = from.getActorSpec();
      return ActorSpecOf{load_id<JobId>(spec.getJob()), schema_values::load(spec.getSpec())};
    }
    case schema::JournalEntry::ACTOR: return load_row(from.getActor());
    case schema::JournalEntry::ACTOR_STATE: {
      auto saved = from.getActorState();
      return ActorSaved{load_id<ActorId>(saved.getActor()), load_bytes(saved.getState())};
    }
    case schema::JournalEntry::GROUP: return Group{schema_values::load(from.getGroup())};
    case schema::JournalEntry::PAIR: {
      auto pair = from.getPair();
      return Pair{load_id<JobId>(pair.getJob()), load_text(pair.getKey()),
                  load_bytes(pair.getValue())};
    }
    case schema::JournalEntry::DEPARTURE:
      return Departure{schema_values::load(from.getDeparture())};
    case schema::JournalEntry::REQUEST: {
      auto request = from.getRequest();
      Request entry{{load_id<RequestId>(request.getId()), request.getOrder(), request.getAtMs(),
                     request.getAbout(), std::nullopt}};
      if (request.getIsAnswered()) entry.record.reply = load_bytes(request.getReply());
      return entry;
    }
    case schema::JournalEntry::PUBLISHED: {
      auto published = from.getPublished();
      return PublishedEntry{load_text(published.getNameSpace()),
                            load_text(published.getName()),
                            published.getVersion(),
                            schema_values::load_value(published.getValue()),
                            load_text(published.getType()),
                            load_text(published.getLoss())};
    }
  }
  KJ_FAIL_REQUIRE("an entry of a newer version");
}

}  // namespace

std::string key_of_token() { return "token"; }
std::string key_of_counters() { return "counters"; }
std::string key_of(NodeId node) { return "node/" + node.hex(); }
std::string key_of(JobId job) { return "job/" + job.hex(); }
std::string key_of_spec(ActorId actor) { return "actor/" + actor.hex() + "/a-spec"; }
std::string key_of_row(ActorId actor) { return "actor/" + actor.hex() + "/row"; }
std::string key_of_saved(ActorId actor) { return "actor/" + actor.hex() + "/saved"; }
std::string key_of(GroupId group) { return "group/" + group.hex(); }
std::string key_of_pair(JobId job, const std::string& key) {
  return "pair/" + job.hex() + "/" + key;
}
std::string key_of_published(const std::string& name_space, const std::string& name,
                             std::uint64_t version) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(version));  // in the order of the versions
  return "published/" + std::to_string(name_space.size()) + ":" + name_space + "/" +
         std::to_string(name.size()) + ":" + name + "/" + digits;
}

std::string key_of_departure(NodeId node) { return "departure/" + node.hex(); }
std::string key_of_request(std::size_t slot) { return "request/" + std::to_string(slot); }

std::string encode(const Entry& entry) {
  const Buffer bytes = runtime::encode<schema::JournalEntry>(
      [&](schema::JournalEntry::Builder to) { std::visit(EntryWriter{to}, entry); });
  return std::string(bytes.text());
}

Result<Entry> decode(const std::string& bytes) {
  std::optional<Entry> entry;
  Status status = runtime::decode<schema::JournalEntry>(Buffer::copy_of(bytes), "journal entry",
                                                        [&](schema::JournalEntry::Reader from) {
                                                          entry = load_entry(from);
                                                          return Status();
                                                        });
  if (!status.ok()) return status;
  return *std::move(entry);
}

}  // namespace runtime::journal
