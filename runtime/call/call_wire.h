// Calls, replies and notices to and from their Cap'n Proto form (schema/call.capnp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/call/execution_options.h"
#include "runtime/call/fwd.h"
#include "runtime/call/object_state.h"
#include "runtime/call/wait_step.h"
#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/transport/buffer.h"
#include "runtime/transport/channel.h"

namespace runtime {

/// How deep objects that refer to objects may nest in one message.
inline constexpr int kRefDepthMax = 8;

struct CallRequest {
  ActorId actor;
  std::uint64_t incarnation = 0;
  std::uint64_t method = 0;
  std::uint64_t deadline_ms = 0;
  std::uint64_t session = 0;
  std::uint64_t sequence = 0;
  std::uint64_t acknowledged = 0;
  bool lends = false;
  std::uint32_t stream_window = 0;
};

struct CallReply {
  Status status;
  bool lends = false;
  bool gone = false;  // a failure: the process has no such actor (any more)
  ActorId actor{};    // of one that lends: what it answers
  std::uint64_t sequence = 0;
};

struct CallNotice {
  enum class Kind {
    kCancel,
    kArgumentsReleased,
    kResultReleased,
    kForceCancel,
    kStreamItem,
    kStreamTaken,
    kDrained,
    kWaits
  };
  ActorId actor;
  std::uint64_t sequence = 0;
  Kind kind = Kind::kCancel;
  std::uint64_t taken = 0;        // of kStreamTaken
  std::vector<WaitStep> waits{};  // of kWaits; the last one is for this call
};

/// Makes the loan of a value that lends objects; called at most once, while it is decoded.
using MakeLoan = std::function<std::shared_ptr<const void>()>;

/// The first of these, or of those that they refer to in turn, that is not settled. An object that
/// was put may refer to results that are still awaited. Null: all are settled, and can travel.
ObjectStatePtr first_unsettled(const std::vector<ObjectStatePtr>& refs);

/// All references in the value must be settled (first_unsettled). The value's own small bytes are
/// not in the message: send them as the payload. Errors: kInvalidArgument when references nest
/// deeper than kRefDepthMax.
Result<Buffer> encode_call(const CallRequest& call, const ObjectValue& arguments);
Result<Buffer> encode_reply(const CallReply& reply, const ObjectValue& value);
/// What goes over another way than the actor's connection: the opaque bytes of a
/// control::ConstructorAwaited.
Buffer encode_notice(const CallNotice& notice);
/// Tells the other side. Not sent means that the connection is gone, and with it what the notice is
/// about.
void send_notice(Channel& channel, const CallNotice& notice, Flush flush = Flush::kSoon);

/// `payload` is the frame's. `context`: of the states that what the message refers to becomes;
/// null: a message cannot refer to stored objects. Errors: kInvalidArgument.
Status decode_call(const Buffer& meta, Buffer payload, const ObjectContextPtr& context,
                   const std::function<std::shared_ptr<const void>(const CallRequest&)>& make_loan,
                   CallRequest* call, ObjectValue* arguments);
/// What is to be said to the actor of a reply that no caller waits for any more. Nothing when the
/// reply lends nothing, or is malformed.
std::optional<CallNotice> release_of(const Buffer& reply_meta);
Status decode_reply(const Buffer& meta, Buffer payload, const ObjectContextPtr& context,
                    const MakeLoan& make_loan, CallReply* reply, ObjectValue* value);
Result<CallNotice> decode_notice(const Buffer& meta);

/// A notice of kind kStreamItem with its value. `lend_id`: 0, or what its release names. Errors: as
/// encode_call.
Result<Buffer> encode_stream_item(ActorId actor, std::uint64_t sequence, std::uint64_t lend_id,
                                  const ObjectValue& value);
Result<ObjectValue> decode_stream_item(
    const Buffer& meta, Buffer payload, const ObjectContextPtr& context,
    const std::function<std::shared_ptr<const void>(std::uint64_t lend_id)>& make_loan);

/// What spawn() gives to a constructor, as the opaque bytes of an ActorSpec. Small arguments lie in
/// the message.
Result<std::string> encode_constructor(const std::string& signature, const ObjectValue& arguments,
                                       const ExecutionOptions& execution);
Status decode_constructor(const std::string& bytes, const ObjectContextPtr& context,
                          std::string* signature, ObjectValue* arguments,
                          ExecutionOptions* execution);

}  // namespace runtime
