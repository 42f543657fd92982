#include "runtime/head/published_table.h"

#include "runtime/core/check.h"
#include "runtime/head/head_commands.h"
#include "runtime/head/journal_entries.h"
#include "runtime/head/table_lookup.h"

namespace runtime {

void PublishedTable::apply(const command::Publish& c) {
  Versions& versions = names_[c.name];
  CHECK(versions.empty() || versions.rbegin()->first < c.version);
  versions.emplace(c.version, PublishedVersion{c.value, c.type});
  changed_.note({c.name, c.version});
}

void PublishedTable::apply(const command::MoveCopy& c) {
  PublishedVersion& published = names_.at(c.name).at(c.version);
  auto* copies = std::get_if<std::vector<ObjectLocation>>(&published.value);
  CHECK(copies != nullptr);
  std::erase_if(*copies, [&](const ObjectLocation& copy) { return copy.node == c.from; });
  copies->push_back(c.to);
  published.loss.clear();  // its node may have gone while it was copied
  changed_.note({c.name, c.version});
}

void PublishedTable::apply(const command::Unpublish& c) {
  auto found = names_.find(c.name);
  CHECK(found != names_.end());
  CHECK(found->second.erase(c.version) == 1);
  if (found->second.empty()) names_.erase(found);
  changed_.note({c.name, c.version});
}

void PublishedTable::remove_node(NodeId node, const std::string& why) {
  for (auto& [name, versions] : names_) {
    for (auto& [version, published] : versions) {
      auto* copies = std::get_if<std::vector<ObjectLocation>>(&published.value);
      if (!copies || std::erase_if(*copies, [&](const ObjectLocation& copy) {
                       return copy.node == node;
                     }) == 0)
        continue;
      if (copies->empty()) published.loss = why;
      changed_.note({name, version});
    }
  }
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

// -- The journal

void PublishedTable::take_changes(std::vector<JournalWrite>& writes) {
  changed_.take(writes, [this](const Which& which) { return write_of(which); });
}

JournalWrite PublishedTable::write_of(const Which& which) const {
  const auto& [name, version] = which;
  const std::string key = journal::key_of_published(name.first, name.second, version);
  const Versions* versions = find(name);
  const PublishedVersion* published = versions ? table_lookup::lookup(*versions, version) : nullptr;
  if (!published) return {key, {}};
  return {key, journal::encode(journal::PublishedEntry{name.first, name.second, version,
                                                       published->value, published->type,
                                                       published->loss})};
}

Status PublishedTable::restore(const journal::PublishedEntry& entry) {
  Versions& versions = names_[Name(entry.name_space, entry.name)];
  if (!versions.empty() && versions.rbegin()->first >= entry.version)
    return invalid_argument("its version is not larger than the one before");
  versions.emplace(entry.version, PublishedVersion{entry.value, entry.type, entry.loss});
  return {};
}

}  // namespace runtime
