// Communicator: collectives among the ranks of one group, over whatever links them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/comm/links.h"
#include "rl/comm/ordered_sum.h"
#include "rl/comm/pulse.h"
#include "runtime/core/result.h"

namespace rl {

/// What Communicator::begin_exchange() began. Ends, at the latest, when it is destroyed.
struct Transfer {
  bool is_begun = false;
  std::string what;
  std::unique_ptr<Exchange> exchange;  // null: this rank moves nothing
};

/// Collectives among the ranks of one group. Every rank must make the same calls in the same order
/// with the same sizes. One thread at a time, but for abort() and pulse(). What sums, sums in the
/// order of ranks: every rank ends with the same bits, whatever the links. `what` says in errors,
/// in profiles and to who watches what is moved: "gradients of layer 3".
///
/// Errors: kUnavailable (a rank is gone), kDeadlineExceeded (it is late), kInternal (the ranks do
/// not make the same calls), or the status given to abort(). Each names the operation, `what`, this
/// rank, and the rank at fault. The group is then broken and must be made again.
class Communicator {
 public:
  struct Options {
    std::size_t bucket_bytes = std::size_t{8} << 20;  // large sums are cut into pieces of this
  };

  explicit Communicator(std::unique_ptr<Links> links) : Communicator(std::move(links), Options()) {}
  Communicator(std::unique_ptr<Links> links, const Options& options);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return links_->rank(); }
  int size() const { return links_->size(); }

  /// Every rank ends with the element-by-element sum. Bytes sent by a rank: 2 (n - 1) / n of the
  /// values, as of a ring.
  runtime::Status all_reduce_sum(std::span<float> values, std::string_view what = "values");
  runtime::Status all_reduce_sum(std::span<double> values, std::string_view what = "values");

  /// The same over several rounds, which all ranks take part in: in this one those add that have a
  /// 1 in `adds`. After the last round the sum of all rounds is in `values` of every rank. With
  /// `homes` (a range of each rank) it is in this rank's home alone. Before the last round `values`
  /// stay as they are. `rounds` is the rank's own, new for each sum: it holds the rank's part of
  /// the values meanwhile.
  runtime::Status reduce_round(std::span<float> values, SumRounds<float>& rounds,
                               std::span<const std::uint8_t> adds, bool last,
                               std::span<const ArenaRange> homes = {},
                               std::string_view what = "values");

  /// Every rank ends with every home as its rank has it.
  runtime::Status gather_homes(std::span<float> values, std::span<const ArenaRange> homes,
                               std::string_view what = "values");

  /// `value` of every rank, in rank order.
  runtime::Result<std::vector<std::uint64_t>> all_gather(std::uint64_t value,
                                                         std::string_view what = "a number");

  /// Sends `mine` to every other rank; `others[r]` receives rank r's. Sizes may differ from rank to
  /// rank, and be zero; `others[rank()]` is left alone.
  runtime::Status all_gather(std::span<const std::byte> mine,
                             std::span<const std::span<std::byte>> others, std::string_view what);

  /// Sends and receives what each pair of ranks has agreed on. Parts of zero bytes and parts
  /// between a rank and itself are skipped.
  runtime::Status all_to_all(std::span<const Outgoing> sent, std::span<const Incoming> received,
                             std::string_view what);

  /// The same without waiting: other calls may follow before the transfer is waited for. Transfers
  /// are waited for in the order in which they were begun, on all ranks at the same places.
  Transfer begin_exchange(std::span<const Outgoing> sent, std::span<const Incoming> received,
                          std::string what);
  /// Returns when what was to be received is there, and what was sent may be overwritten. Without
  /// effect where nothing was begun.
  runtime::Status finish(Transfer& transfer);

  /// Returns when all ranks have called it.
  runtime::Status barrier(std::string_view what = "");

  /// Ends this rank's operations, present and future, with `why`; to end an operation on all ranks,
  /// abort it on all of them. From any thread.
  void abort(const runtime::Status& why) { links_->abort(why); }

  /// This rank's progress. Any thread.
  Pulse pulse() const { return recorder_.read(); }
  /// Something was done between two operations.
  void progress(std::string_view where) { recorder_.at(where); }

 private:
  class Operation;

  template <class T>
  runtime::Status reduce(std::span<T> values, std::string_view what);
  template <class T>
  SumPlan plan_of(std::span<T> values, std::span<const ArenaRange> homes) const;
  template <class T>
  OrderedSum<T> sum(const SumPlan& plan, const Operation& operation);
  runtime::Status gather(const char* name, std::span<const std::byte> mine,
                         std::span<const std::span<std::byte>> others, std::string_view what);
  std::unique_ptr<Exchange> start(std::span<const Outgoing> sent,
                                  std::span<const Incoming> received, std::uint64_t operation);
  runtime::Status exchange(const char* name, std::span<const Outgoing> sent,
                           std::span<const Incoming> received, std::string_view what);

  std::unique_ptr<Links> links_;
  Options options_;
  PulseRecorder recorder_;
};

/// The group of one: every collective is the identity.
std::unique_ptr<Communicator> make_single_communicator();

}  // namespace rl
