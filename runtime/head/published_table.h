// PublishedTable: the published versions of each name that the cluster keeps, and where they are.
// Part of ClusterTables.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/control/object_control.h"
#include "runtime/core/status.h"
#include "runtime/head/table_changes.h"

namespace runtime {

namespace command {
struct Publish;
struct MoveCopy;
struct Unpublish;
}  // namespace command
namespace journal {
struct PublishedEntry;
}

/// A published version as the head knows it.
struct PublishedVersion {
  PublishedValue value;
  std::string type;       // of the value; empty: not said
  std::string loss = {};  // not empty: why no copy is left
  bool operator==(const PublishedVersion&) const = default;
};

/// Plain data with one way to change it (cluster_tables.h).
class PublishedTable {
 public:
  using Name = std::pair<std::string, std::string>;  // namespace, name
  using Versions = std::map<std::uint64_t, PublishedVersion>;

  /// The version must be larger than the latest of its name.
  void apply(const command::Publish& c);
  /// Another copy takes the place of that node's.
  void apply(const command::MoveCopy& c);
  void apply(const command::Unpublish& c);
  /// The node's copies are gone, for that reason.
  void remove_node(NodeId node, const std::string& why);

  /// Null: there is none.
  const Versions* find(const Name& name) const;
  /// The names of one namespace.
  std::vector<Name> in(const std::string& name_space) const;
  const std::map<Name, Versions>& all() const { return names_; }

  void follow() { changed_.follow(); }
  void take_changes(std::vector<JournalWrite>& writes);
  /// Errors: kInvalidArgument (its version is not larger than the one before).
  Status restore(const journal::PublishedEntry& entry);

 private:
  using Which = std::pair<Name, std::uint64_t>;
  JournalWrite write_of(const Which& which) const;

  std::map<Name, Versions> names_;  // without empty ones
  TableChanges<Which> changed_;
};

}  // namespace runtime
