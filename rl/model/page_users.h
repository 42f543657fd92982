// PageUsers: how many use each page of an arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rl {

/// Neighbouring pages.
struct PageRun {
  std::size_t first = 0;
  std::size_t last = 0;  // one past

  std::size_t count() const { return last - first; }
  bool operator==(const PageRun&) const = default;
};

/// A page has memory while it has users: what shares a page with others keeps it.
class PageUsers {
 public:
  PageUsers() = default;
  PageUsers(std::size_t pages, std::uint16_t users) : users_(pages, users) {}

  std::size_t pages() const { return users_.size(); }

  /// One user more for each of them. Returns those that had none.
  std::vector<PageRun> add(PageRun pages);
  /// One user less for each of them, which have some. Returns those that have none now.
  std::vector<PageRun> remove(PageRun pages);

 private:
  std::vector<std::uint16_t> users_;  // by page
};

}  // namespace rl
