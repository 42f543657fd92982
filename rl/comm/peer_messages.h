// PeerMessages: messages from one rank to another, which the others know nothing of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/comm/links.h"
#include "rl/comm/pulse.h"
#include "runtime/core/result.h"

namespace rl {

/// Point-to-point messages, each with its size and a channel, which is a number of the user's.
/// Messages of a channel between two ranks are received in the order in which they are sent. Those
/// of other channels that arrive before them are kept. Unlike with a Communicator, ranks need not
/// make the same calls: a rank receives what was sent to it. While it waits for one message, all
/// others that it sends or has been sent get on. One thread at a time, but for abort() and pulse().
/// `what` says in errors, and to who watches, what is moved. Errors: those of Exchange::wait with
/// `what` and both ranks; the group is then broken.
class PeerMessages {
 public:
  explicit PeerMessages(std::unique_ptr<Links> links);
  PeerMessages(const PeerMessages&) = delete;
  PeerMessages& operator=(const PeerMessages&) = delete;

  int rank() const { return links_->rank(); }
  int size() const { return links_->size(); }

  /// Begins to send, and returns at once. `owner` holds the bytes until they are sent, as is seen
  /// at the next calls, and at the latest when flush() has returned. Of the messages under way to a
  /// peer only the newest kUnderWay stay so: the call waits for those before them.
  runtime::Status send(int peer, std::uint64_t channel, std::span<const std::byte> bytes,
                       std::shared_ptr<const void> owner, std::string_view what);

  /// The next message from that rank in that channel.
  runtime::Result<std::vector<std::byte>> receive(int peer, std::uint64_t channel,
                                                  std::string_view what);

  /// Moves what can be moved without waiting: for a rank that computes while it sends.
  void progress() { links_->progress(); }

  /// Returns when all is sent, or will not be: call it after a failure, too, so that the links let
  /// go of it.
  runtime::Status flush();

  /// See Communicator.
  void abort(const runtime::Status& why) { links_->abort(why); }
  Pulse pulse() const { return recorder_.read(); }

  static constexpr std::size_t kUnderWay = 4;

 private:
  // A message is two parts: this, and its bytes if there are any.
  struct Header {
    std::uint64_t channel = 0;
    std::uint64_t size = 0;
  };
  struct Sent {
    std::unique_ptr<const Header> head;
    std::shared_ptr<const void> owner;
    std::string what;
    std::unique_ptr<Exchange> header, bytes;
  };

  struct Received {
    std::uint64_t channel = 0;
    std::vector<std::byte> bytes;
  };

  void let_go_of_sent();
  runtime::Status end(Sent& sent, int peer);
  runtime::Result<Received> next_from(int peer);
  runtime::Status failed(const runtime::Status& status, std::string_view what, int from,
                         int to) const;

  std::unique_ptr<Links> links_;
  PulseRecorder recorder_;
  // By peer.
  std::vector<std::deque<Sent>> under_way_;
  std::vector<std::deque<Received>> kept_;      // of other channels
  std::vector<std::uint64_t> sent_, received_;  // parts so far
};

}  // namespace rl
