#include "runtime/head/published_table.h"

#include "runtime/core/check.h"

namespace runtime {

void PublishedTable::add(const Name& name, std::uint64_t version, PublishedVersion published) {
  Versions& versions = names_[name];
  CHECK(versions.empty() || versions.rbegin()->first < version);
  versions.emplace(version, std::move(published));
}

void PublishedTable::remove(const Name& name, std::uint64_t version) {
  auto found = names_.find(name);
  CHECK(found != names_.end());
  CHECK(found->second.erase(version) == 1);
  if (found->second.empty()) names_.erase(found);
}

void PublishedTable::move_copy(const Name& name, std::uint64_t version, NodeId from,
                               ObjectLocation to) {
  PublishedVersion& published = names_.at(name).at(version);
  auto* copies = std::get_if<std::vector<ObjectLocation>>(&published.value);
  CHECK(copies != nullptr);
  std::erase_if(*copies, [&](const ObjectLocation& copy) { return copy.node == from; });
  copies->push_back(std::move(to));
  published.loss.clear();  // its node may have gone while it was copied
}

std::vector<std::pair<PublishedTable::Name, std::uint64_t>> PublishedTable::remove_node(
    NodeId node, const std::string& why) {
  std::vector<std::pair<Name, std::uint64_t>> touched;
  for (auto& [name, versions] : names_) {
    for (auto& [version, published] : versions) {
      auto* copies = std::get_if<std::vector<ObjectLocation>>(&published.value);
      if (!copies || std::erase_if(*copies, [&](const ObjectLocation& copy) {
                       return copy.node == node;
                     }) == 0)
        continue;
      if (copies->empty()) published.loss = why;
      touched.emplace_back(name, version);
    }
  }
  return touched;
}

const PublishedTable::Versions* PublishedTable::find(const Name& name) const {
  auto found = names_.find(name);
  return found == names_.end() ? nullptr : &found->second;
}

std::vector<PublishedTable::Name> PublishedTable::in(const std::string& name_space) const {
  std::vector<Name> names;
  for (auto found = names_.lower_bound(Name(name_space, ""));
       found != names_.end() && found->first.first == name_space; ++found)
    names.push_back(found->first);
  return names;
}

}  // namespace runtime
