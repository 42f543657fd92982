#include "placement/autoscaler/node_record.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>

namespace placement {

namespace {

using Json = nlohmann::json;
using runtime::invalid_argument;
using runtime::Result;

constexpr int kVersion = 1;
constexpr std::array<std::string_view, 5> kPhases = {"wanted", "starting", "joined", "retiring",
                                                     "removing"};
constexpr std::size_t kReasonBytesMax = 300;

Result<std::string> text_of(const Json& record, const char* key) {
  auto found = record.find(key);
  if (found == record.end() || !found->is_string())
    return invalid_argument(std::string("it has no ") + key);
  return found->get<std::string>();
}

Result<NodeRecord> decode_record(const Json& json) {
  if (!json.is_object()) return invalid_argument("it is not an object");
  NodeRecord record;
  std::string phase, capacity, node;
  for (auto [key, value] : {std::pair("id", &record.id),
                            {"type", &record.type},
                            {"phase", &phase},
                            {"capacity", &capacity},
                            {"node", &node},
                            {"reason", &record.reason}}) {
    auto text = text_of(json, key);
    if (!text.ok()) return text.status();
    *value = std::move(*text);
  }
  if (record.id.empty()) return invalid_argument("its id is empty");
  auto which = std::find(kPhases.begin(), kPhases.end(), phase);
  if (which == kPhases.end()) return invalid_argument("there is no phase '" + phase + "'");
  record.phase = static_cast<NodePhase>(which - kPhases.begin());
  if (capacity != to_string(Capacity::kSpot) && capacity != to_string(Capacity::kOnDemand))
    return invalid_argument("there is no capacity '" + capacity + "'");
  record.capacity = capacity == to_string(Capacity::kSpot) ? Capacity::kSpot : Capacity::kOnDemand;
  if (node.empty()) return record;
  auto id = runtime::NodeId::from_hex(node);
  if (!id.ok()) return id.status();
  record.node = *id;
  return record;
}

}  // namespace

std::string_view to_string(NodePhase phase) { return kPhases[static_cast<std::size_t>(phase)]; }

std::string encode_records(const std::vector<NodeRecord>& records) {
  Json nodes = Json::array();
  for (const NodeRecord& record : records) {
    nodes.push_back({{"id", record.id},
                     {"type", record.type},
                     {"capacity", std::string(to_string(record.capacity))},
                     {"phase", std::string(to_string(record.phase))},
                     {"node", record.node.is_none() ? "" : record.node.hex()},
                     {"reason", record.reason.substr(0, kReasonBytesMax)}});
  }
  return Json{{"version", kVersion}, {"nodes", nodes}}.dump(-1, ' ', false,
                                                            Json::error_handler_t::replace);
}

Result<std::vector<NodeRecord>> decode_records(const std::string& text) {
  const std::string where = "the autoscaler's records";
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("version") || !json["version"].is_number_integer())
    return invalid_argument(where + " are malformed");
  if (json["version"].get<std::int64_t>() != kVersion)
    return runtime::unimplemented(where + " are of version " + json["version"].dump() +
                                  "; this one reads version 1");
  if (!json.contains("nodes") || !json["nodes"].is_array())
    return invalid_argument(where + " are malformed: they list no nodes");
  std::vector<NodeRecord> records;
  std::set<std::string> ids;
  for (const Json& item : json["nodes"]) {
    auto record = decode_record(item);
    if (!record.ok())
      return record.status().with_context(where + ", record " + std::to_string(records.size()));
    if (!ids.insert(record->id).second)
      return invalid_argument(where + ": '" + record->id + "' is there twice");
    records.push_back(std::move(*record));
  }
  return records;
}

}  // namespace placement
