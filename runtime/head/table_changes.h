// TableChanges: the keys of a table that have changed since the journal asked last.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "runtime/head/journal.h"

namespace runtime {

/// Each thing once, as it is when it is asked for. Notes nothing before follow().
template <class Key>
class TableChanges {
 public:
  void follow() { follows_ = true; }
  void note(Key key) {
    if (follows_) keys_.insert(std::move(key));
  }
  /// Appends the write of each, and begins again.
  template <class WriteOf>
  void take(std::vector<JournalWrite>& writes, WriteOf write_of) {
    for (const Key& key : keys_) writes.push_back(write_of(key));
    keys_.clear();
  }

 private:
  bool follows_ = false;
  std::set<Key> keys_;
};

}  // namespace runtime
