#include "rl/data/message_tree.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "rl/data/json_text.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;

struct Message {
  std::string parent;  // empty: a root
  std::string role;
  std::string text;
  double rank = std::numeric_limits<double>::infinity();
  std::size_t best_reply = SIZE_MAX;
};

Result<std::string> text_column(const RawRow& row, const char* name, const char* other) {
  for (const char* key : {name, other}) {
    const auto found = row.value.find(key);
    if (found == row.value.end()) continue;
    if (found->is_string() || found->is_number_integer()) return json_as_text(*found);
    return invalid_argument(row.where + ": '" + key + "' must be a text, it is " +
                            json_type_name(*found));
  }
  return invalid_argument(row.where + ": no key '" + name + "' (data.conversations=tree); it has " +
                          list_json_keys(row.value));
}

Result<Message> read_message(const RawRow& row) {
  Message message;
  const Result<std::string> role = text_column(row, "role", "from");
  if (!role.ok()) return role.status();
  if (*role == "prompter" || *role == "user" || *role == "human")
    message.role = "user";
  else if (*role == "assistant" || *role == "bot" || *role == "gpt")
    message.role = "assistant";
  else if (*role == "system")
    message.role = "system";
  else
    return invalid_argument(row.where + ": 'role' is '" + *role +
                            "': there is prompter (user, human), assistant (bot, gpt) and system");
  Result<std::string> text = text_column(row, "text", "content");
  if (!text.ok()) return text.status();
  message.text = std::move(*text);
  if (!row.value.contains("parent_id"))
    return invalid_argument(row.where + ": no key 'parent_id' (data.conversations=tree); it has " +
                            list_json_keys(row.value));
  message.parent = json_as_text(row.value.at("parent_id"));
  if (const auto rank = row.value.find("rank"); rank != row.value.end() && rank->is_number())
    message.rank = rank->get<double>();
  return message;
}

/// A message that is its own ancestor, by the parents' indexes.
std::optional<std::size_t> find_circle(const std::vector<std::size_t>& parents) {
  std::vector<std::size_t> walks(parents.size(), SIZE_MAX);  // where the walk there began
  for (std::size_t begin = 0; begin < parents.size(); ++begin) {
    std::size_t at = begin;
    for (; at != SIZE_MAX && walks[at] == SIZE_MAX; at = parents[at]) walks[at] = begin;
    if (at != SIZE_MAX && walks[at] == begin) return at;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<DataRow>> conversations_of_tree(const std::vector<RawRow>& rows,
                                                   const RowMapping& mapping) {
  std::vector<Message> messages;
  std::unordered_map<std::string, std::size_t> by_id;
  for (const RawRow& row : rows) {
    const Result<std::string> id = text_column(row, "message_id", "id");
    if (!id.ok()) return id.status();
    Result<Message> message = read_message(row);
    if (!message.ok()) return message.status();
    if (!by_id.emplace(*id, messages.size()).second)
      return invalid_argument(row.where + ": the id '" + *id + "' is another message's too");
    messages.push_back(std::move(*message));
  }
  std::vector<std::size_t> parents(messages.size(), SIZE_MAX);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].parent.empty()) continue;
    const auto parent = by_id.find(messages[i].parent);
    if (parent == by_id.end())
      return invalid_argument(rows[i].where + ": its parent '" + messages[i].parent +
                              "' is not in the data: give all files of the trees");
    parents[i] = parent->second;
    std::size_t& best = messages[parents[i]].best_reply;
    if (messages[i].role == "assistant" &&
        (best == SIZE_MAX || messages[i].rank < messages[best].rank))
      best = i;
  }
  if (const std::optional<std::size_t> circle = find_circle(parents))
    return invalid_argument(rows[*circle].where + ": its parents go round in a circle");
  std::vector<DataRow> conversations;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role != "user" || messages[i].best_reply == SIZE_MAX) continue;
    DataRow row;
    row.where = rows[i].where;
    row.prompt = ordered_json::array();
    for (std::size_t at = i; at != SIZE_MAX; at = parents[at])
      row.prompt.push_back({{"role", messages[at].role}, {"content", messages[at].text}});
    if (!mapping.system_prompt.empty() && row.prompt.back().at("role") != "system")
      row.prompt.push_back({{"role", "system"}, {"content", mapping.system_prompt}});
    std::reverse(row.prompt.begin(), row.prompt.end());
    row.response = messages[messages[i].best_reply].text;
    if (const auto source = rows[i].value.find(mapping.data_source); source != rows[i].value.end())
      row.data_source = json_as_text(*source);
    conversations.push_back(std::move(row));
  }
  if (conversations.empty() && !rows.empty())
    return invalid_argument(
        rows[0].where + ": no user's message in the data has a reply (data.conversations=tree)");
  return conversations;
}

}  // namespace rl
