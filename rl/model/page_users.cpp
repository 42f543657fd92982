#include "rl/model/page_users.h"

#include "runtime/core/check.h"

namespace rl {
namespace {

void append_page(std::vector<PageRun>& runs, std::size_t page) {
  if (!runs.empty() && runs.back().last == page)
    ++runs.back().last;
  else
    runs.push_back({page, page + 1});
}

}  // namespace

std::vector<PageRun> PageUsers::add(PageRun pages) {
  std::vector<PageRun> absent;
  for (std::size_t page = pages.first; page < pages.last; ++page)
    if (users_[page]++ == 0) append_page(absent, page);
  return absent;
}

std::vector<PageRun> PageUsers::remove(PageRun pages) {
  std::vector<PageRun> unused;
  for (std::size_t page = pages.first; page < pages.last; ++page) {
    CHECK(users_[page] > 0);
    if (--users_[page] == 0) append_page(unused, page);
  }
  return unused;
}

}  // namespace rl
