// Links that count what a rank sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rl/comm/links.h"

namespace rl::testing {

/// Adds the bytes for each rank to `sent`, which it borrows.
class CountingLinks final : public Links {
 public:
  CountingLinks(std::unique_ptr<Links> links, std::vector<std::size_t>& sent)
      : links_(std::move(links)), sent_(sent) {}

  int rank() const override { return links_->rank(); }
  int size() const override { return links_->size(); }
  std::unique_ptr<Exchange> start(std::span<const Outgoing> sent,
                                  std::span<const Incoming> received,
                                  std::uint64_t operation) override {
    for (const Outgoing& part : sent)
      sent_[static_cast<std::size_t>(part.peer)] += part.bytes.size();
    return links_->start(sent, received, operation);
  }
  void abort(const runtime::Status& why) override { links_->abort(why); }

 private:
  std::unique_ptr<Links> links_;
  std::vector<std::size_t>& sent_;
};

}  // namespace rl::testing
