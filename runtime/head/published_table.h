// PublishedTable: which versions of which names the cluster keeps, and where. Part of
// ClusterTables.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/control/object_control.h"

namespace runtime {

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
  void add(const Name& name, std::uint64_t version, PublishedVersion published);
  void remove(const Name& name, std::uint64_t version);
  /// Another copy takes the place of that node's.
  void move_copy(const Name& name, std::uint64_t version, NodeId from, ObjectLocation to);
  /// The node's copies are gone, for that reason. Returns the versions that had one.
  std::vector<std::pair<Name, std::uint64_t>> remove_node(NodeId node, const std::string& why);

  /// Null: there is none.
  const Versions* find(const Name& name) const;
  /// The names of one namespace.
  std::vector<Name> in(const std::string& name_space) const;
  const std::map<Name, Versions>& all() const { return names_; }

 private:
  std::map<Name, Versions> names_;  // without empty ones
};

}  // namespace runtime
