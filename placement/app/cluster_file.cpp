#include "placement/app/cluster_file.h"

#include <nlohmann/json.hpp>

#include "runtime/core/json.h"
#include "runtime/process/file_util.h"
#include "runtime/process/private_folder.h"

namespace placement {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t kBytesMax = 64 << 10;
constexpr const char* kName = "cluster.json";
}  // namespace

runtime::Result<std::optional<ClusterFile>> read_cluster_file(const fs::path& journal) {
  std::error_code error;
  if (!fs::exists(journal / kName, error)) {
    if (fs::exists(journal / "journal.db", error)) {
      return runtime::invalid_argument(
          "journal " + journal.string() + ": " + kName +
          " is missing next to journal.db; put it back, or name another --journal");
    }
    return std::optional<ClusterFile>();
  }
  auto text = runtime::read_file(journal / kName, kBytesMax);
  if (!text.ok()) return text.status().with_context("journal " + journal.string());
  const auto json = runtime::parse_json(*text);
  const auto field = [&](const char* name) {
    return json.is_object() && json.contains(name) && json[name].is_string()
               ? json[name].get<std::string>()
               : std::string();
  };
  auto cluster = runtime::ClusterId::from_hex(field("cluster"));
  auto node = runtime::NodeId::from_hex(field("node"));
  if (!cluster.ok() || !node.ok() || field("token").empty()) {
    return runtime::invalid_argument(
        "journal " + journal.string() + ": " + kName +
        " is damaged; put a copy in its place, or name another --journal");
  }
  return std::optional<ClusterFile>(
      ClusterFile{*cluster, field("token"), *node, field("next_token")});
}

runtime::Status check_journal_folder(const fs::path& journal,
                                     const std::optional<ClusterFile>& file) {
  std::error_code error;
  const bool has_entries =
      fs::exists(journal / "journal.db", error) && fs::file_size(journal / "journal.db", error) > 0;
  if (file && !file->node.is_none() && !has_entries) {
    return runtime::invalid_argument(
        "journal " + journal.string() + ": it is of cluster " + file->cluster.short_hex() +
        ", and its journal.db is missing or empty: put a copy in its place, or "
        "name another --journal, where a new cluster begins");
  }
  const bool is_foreign =
      !file && !has_entries && fs::is_directory(journal, error) && !fs::is_empty(journal, error);
  if (is_foreign) {
    return runtime::invalid_argument(
        "--journal " + journal.string() +
        ": the folder holds other things, and a journal closes its folder to "
        "other users: name one that is empty, or that is not there yet");
  }
  return {};
}

runtime::Status write_cluster_file(const fs::path& journal, const ClusterFile& file) {
  std::error_code error;
  fs::create_directories(journal.parent_path(), error);
  if (error)
    return runtime::invalid_argument("--journal " + journal.string() + ": " + error.message());
  if (runtime::Status status = runtime::make_private_folder(journal); !status.ok())
    return status.with_context("--journal");
  nlohmann::json json{
      {"cluster", file.cluster.hex()}, {"token", file.token}, {"node", file.node.hex()}};
  if (!file.next_token.empty()) json["next_token"] = file.next_token;
  return runtime::write_file_durably(journal / kName, json.dump(2) + "\n", 0600)
      .with_context("--journal " + journal.string());
}

}  // namespace placement
