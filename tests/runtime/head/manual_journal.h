// ManualJournal: a journal that records when the test says so.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/head/journal.h"

namespace runtime {

class ManualJournal final : public Journal {
 public:
  Status load(const std::function<Status(const std::string& key, const std::string& value)>& entry)
      override {
    for (const auto& [key, value] : entries) {
      if (Status status = entry(key, value); !status.ok()) return status;
    }
    return {};
  }
  void write(std::vector<JournalWrite> batch, UniqueFunction<void()> recorded) override {
    for (JournalWrite& write : batch) {
      if (write.value)
        entries[write.key] = *std::move(write.value);
      else
        entries.erase(write.key);
    }
    waiting.push_back(std::move(recorded));
  }
  Status trouble() const override { return trouble_now; }
  Status scarcity() const override { return scarcity_now; }

  void record_first() {
    UniqueFunction<void()> recorded = std::move(waiting.front());
    waiting.pop_front();
    recorded();
  }
  void record_all() {
    while (!waiting.empty()) record_first();
  }

  std::map<std::string, std::string> entries;  // those of the batches that wait, too
  std::deque<UniqueFunction<void()>> waiting;
  Status trouble_now, scarcity_now;
};

}  // namespace runtime
