// LineageTable: the lineages by which a process makes lost objects again, within a limit of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace runtime {

/// What a table can do without: from then on it says why when it is asked. Any thread.
class Forgettable {
 public:
  virtual ~Forgettable() = default;
  virtual void forget(std::string why) = 0;
};

/// The lineages of a process. Those that are too much are forgotten, oldest first; their objects
/// are then lost for good when their copies are. Any thread.
class LineageTable : public std::enable_shared_from_this<LineageTable> {
 public:
  explicit LineageTable(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  LineageTable(const LineageTable&) = delete;
  LineageTable& operator=(const LineageTable&) = delete;

  /// What a lineage takes, given back when this goes.
  class Place {
   public:
    Place() = default;
    Place(std::shared_ptr<LineageTable> table, std::uint64_t number)
        : table_(std::move(table)), number_(number) {}
    Place(Place&&) = default;
    Place& operator=(Place&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(number_, other.number_);
      return *this;
    }
    ~Place() {
      if (table_) table_->remove(number_);
    }

   private:
    std::shared_ptr<LineageTable> table_;
    std::uint64_t number_ = 0;
  };

  /// May forget others, or this one where it is too much by itself.
  [[nodiscard]] Place add(std::weak_ptr<Forgettable> lineage, std::size_t bytes);
  std::size_t bytes() const;

 private:
  void remove(std::uint64_t number);

  struct Entry {
    std::weak_ptr<Forgettable> lineage;
    std::size_t bytes;
  };

  const std::size_t bytes_max_;
  mutable std::mutex mutex_;  // guards what follows
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Entry> lineages_;  // by age
  std::size_t bytes_ = 0;
};

}  // namespace runtime
