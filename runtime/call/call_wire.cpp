#include "runtime/call/call_wire.h"

#include "runtime/call/object_context.h"
#include "runtime/call/remote_lineage.h"
#include "runtime/call/stored_object.h"
#include "runtime/schema/call.capnp.h"
#include "runtime/transport/capnp_codec.h"

namespace runtime {

namespace {

/// Where a value's own bytes go.
enum class Own { kPayload, kMessage };

Status write_refs(schema::Value::Builder out, const std::vector<ObjectStatePtr>& refs, int depth);

Status write_value(schema::Value::Builder out, const ObjectValue& value, Own own, int depth) {
  if (value.stored) {
    value.stored->location().write(out.initStored());
    out.setIndirect(!value.stored->is_owned());
    if (const auto& lineage = value.stored->lineage()) {
      out.setMaker(to_text(lineage->maker()));
      out.setKeeper(to_text(lineage->keeper()));
    }
  } else if (own == Own::kMessage)
    out.setBytes(to_data(value.bytes.bytes()));
  else
    out.setPayload();
  return value.refs.empty() ? Status() : write_refs(out, value.refs, depth + 1);
}

Status write_refs(schema::Value::Builder out, const std::vector<ObjectStatePtr>& refs, int depth) {
  if (depth > kRefDepthMax) {
    return invalid_argument("objects that refer to objects nest deeper than " +
                            std::to_string(kRefDepthMax));
  }
  auto list = out.initRefs(static_cast<unsigned>(refs.size()));
  for (unsigned i = 0; i < refs.size(); ++i) {
    const ObjectState& state = *refs[i];
    CHECK(state.is_settled());
    if (!state.failure().ok()) {
      auto failure = list[i].initFailure();
      failure.setCode(static_cast<std::uint16_t>(state.failure().code()));
      failure.setMessage(to_text(state.failure().message()));
    } else if (Status status =
                   write_value(list[i].initValue(), state.value(), Own::kMessage, depth);
               !status.ok()) {
      return status;
    }
  }
  return {};
}

/// What decoding needs besides the message.
struct Reading {
  const ObjectContextPtr& context;
  const std::shared_ptr<const void>& loan;
};

Status read_value(schema::Value::Reader in, Buffer payload, const Reading& reading, int depth,
                  ObjectValue* out) {
  if (depth > kRefDepthMax) return invalid_argument("objects that refer to objects nest too deep");
  switch (in.which()) {
    case schema::Value::PAYLOAD: out->bytes = std::move(payload); break;
    case schema::Value::BYTES: out->bytes = Buffer::copy_of(to_bytes(in.getBytes())); break;
    case schema::Value::STORED: {
      auto location = ObjectLocation::read(in.getStored());
      if (!location.ok()) return location.status();
      if (!reading.context) return invalid_argument("an object in a store where none can be");
      out->stored = reading.context->references.borrow(*location, in.getIndirect());
      if (in.getMaker().size() > 0) {
        out->stored->set_lineage(std::make_shared<RemoteLineage>(
            reading.context, to_string(in.getMaker()), to_string(in.getKeeper())));
      }
      break;
    }
    default: return unimplemented("a value of a kind that this version does not know");
  }
  for (schema::Ref::Reader ref : in.getRefs()) {
    if (ref.which() == schema::Ref::FAILURE) {
      auto code = error_code_from_wire(ref.getFailure().getCode());
      if (code == ErrorCode::kOk) return invalid_argument("a failed object without a failure");
      out->refs.push_back(ObjectState::failed(
          reading.context, Status(code, to_string(ref.getFailure().getMessage()))));
    } else if (ref.which() == schema::Ref::VALUE) {
      ObjectValue value;
      if (Status status = read_value(ref.getValue(), {}, reading, depth + 1, &value); !status.ok())
        return status;
      value.loan = reading.loan;
      out->refs.push_back(ObjectState::ready(reading.context, std::move(value)));
    } else {
      return unimplemented("a reference of a kind that this version does not know");
    }
  }
  out->loan = reading.loan;
  return {};
}

/// Fills a message whose filling may fail.
template <class Schema, class Fill>
Result<Buffer> encode_or_fail(Fill&& fill) {
  Status status;
  Buffer meta = encode<Schema>([&](auto builder) { status = fill(builder); });
  if (!status.ok()) return status;
  return meta;
}

}  // namespace

namespace {

// What nests deeper is refused when it is encoded.
ObjectStatePtr first_unsettled(const std::vector<ObjectStatePtr>& refs, int depth) {
  for (const ObjectStatePtr& ref : refs) {
    if (!ref->is_settled()) return ref;
    if (depth == 0 || !ref->failure().ok()) continue;
    if (ObjectStatePtr inner = first_unsettled(ref->value().refs, depth - 1)) return inner;
  }
  return nullptr;
}

}  // namespace

ObjectStatePtr first_unsettled(const std::vector<ObjectStatePtr>& refs) {
  return first_unsettled(refs, kRefDepthMax);
}

Result<Buffer> encode_call(const CallRequest& call, const ObjectValue& arguments) {
  return encode_or_fail<schema::CallRequest>([&](schema::CallRequest::Builder out) {
    out.setActorId(to_data(call.actor));
    out.setIncarnation(call.incarnation);
    out.setMethod(call.method);
    out.setDeadlineMs(call.deadline_ms);
    out.setSession(call.session);
    out.setSequence(call.sequence);
    out.setAcknowledged(call.acknowledged);
    out.setLends(call.lends);
    out.setStreamWindow(call.stream_window);
    return write_value(out.initArguments(), arguments, Own::kPayload, 0);
  });
}

Result<Buffer> encode_reply(const CallReply& reply, const ObjectValue& value) {
  return encode_or_fail<schema::CallReply>([&](schema::CallReply::Builder out) {
    out.setCode(static_cast<std::uint16_t>(reply.status.code()));
    if (!reply.status.ok()) out.setMessage(to_text(reply.status.message()));
    out.setLends(reply.lends);
    if (reply.lends) {
      out.setActorId(to_data(reply.actor));
      out.setSequence(reply.sequence);
    }
    out.setGone(reply.gone);
    return write_value(out.initValue(), value, Own::kPayload, 0);
  });
}

namespace {

void write_waits(schema::CallNotice::Builder out, const std::vector<WaitStep>& waits) {
  auto steps = out.initWaits(static_cast<unsigned>(waits.size()));
  for (unsigned i = 0; i < waits.size(); ++i) {
    steps[i].setSession(waits[i].session);
    steps[i].setNumber(waits[i].number);
    steps[i].setWaiting(waits[i].waiting);
    steps[i].setAwaited(waits[i].awaited);
    steps[i].setBounded(waits[i].bounded);
  }
}

Status read_waits(schema::CallNotice::Reader in, std::vector<WaitStep>& waits) {
  const auto steps = in.getWaits();
  if (steps.size() > WaitStep::kStepsMax) return invalid_argument("a chain of waits is too long");
  for (const auto step : steps)
    waits.push_back({step.getSession(), step.getNumber(), std::string(step.getWaiting().cStr()),
                     std::string(step.getAwaited().cStr()), step.getBounded()});
  return {};
}

}  // namespace

Buffer encode_notice(const CallNotice& notice) {
  return encode<schema::CallNotice>([&](schema::CallNotice::Builder out) {
    out.setActorId(to_data(notice.actor));
    out.setSequence(notice.sequence);
    switch (notice.kind) {
      case CallNotice::Kind::kCancel: out.setCancel(); break;
      case CallNotice::Kind::kArgumentsReleased: out.setArgumentsReleased(); break;
      case CallNotice::Kind::kResultReleased: out.setResultReleased(); break;
      case CallNotice::Kind::kForceCancel: out.setForceCancel(); break;
      case CallNotice::Kind::kStreamItem: out.initStreamItem(); break;
      case CallNotice::Kind::kStreamTaken: out.setStreamTaken(notice.taken); break;
      case CallNotice::Kind::kDrained: out.setDrained(); break;
      case CallNotice::Kind::kWaits: write_waits(out, notice.waits); break;
    }
  });
}

void send_notice(Channel& channel, const CallNotice& notice, Flush flush) {
  Message message;
  message.kind = FrameKind::kCancel;
  message.meta = encode_notice(notice);
  (void)channel.send(std::move(message), flush);
}

Status decode_call(const Buffer& meta, Buffer payload, const ObjectContextPtr& context,
                   const std::function<std::shared_ptr<const void>(const CallRequest&)>& make_loan,
                   CallRequest* call, ObjectValue* arguments) {
  return decode<schema::CallRequest>(meta, "call", [&](schema::CallRequest::Reader in) -> Status {
    auto actor = to_id<ActorId>(in.getActorId());
    if (!actor.ok()) return actor.status();
    call->actor = *actor;
    call->incarnation = in.getIncarnation();
    call->method = in.getMethod();
    call->deadline_ms = in.getDeadlineMs();
    call->session = in.getSession();
    call->sequence = in.getSequence();
    call->acknowledged = in.getAcknowledged();
    call->lends = in.getLends();
    call->stream_window = in.getStreamWindow();
    if (call->deadline_ms == 0) return invalid_argument("a call without a deadline");
    std::shared_ptr<const void> loan;
    if (call->lends) loan = make_loan(*call);
    return read_value(in.getArguments(), std::move(payload), {context, loan}, 0, arguments);
  });
}

std::optional<CallNotice> release_of(const Buffer& reply_meta) {
  std::optional<CallNotice> notice;
  (void)decode<schema::CallReply>(reply_meta, "reply", [&](schema::CallReply::Reader in) -> Status {
    auto actor = to_id<ActorId>(in.getActorId());
    if (in.getLends() && actor.ok())
      notice = CallNotice{*actor, in.getSequence(), CallNotice::Kind::kResultReleased};
    return {};
  });
  return notice;
}

Status decode_reply(const Buffer& meta, Buffer payload, const ObjectContextPtr& context,
                    const MakeLoan& make_loan, CallReply* reply, ObjectValue* value) {
  return decode<schema::CallReply>(meta, "reply", [&](schema::CallReply::Reader in) -> Status {
    if (in.getCode() != 0) {
      reply->status = Status(error_code_from_wire(in.getCode()), to_string(in.getMessage()));
      reply->gone = in.getGone();
      return {};
    }
    reply->lends = in.getLends();
    std::shared_ptr<const void> loan;
    if (reply->lends) loan = make_loan();
    return read_value(in.getValue(), std::move(payload), {context, loan}, 0, value);
  });
}

Result<CallNotice> decode_notice(const Buffer& meta) {
  CallNotice notice;
  Status status =
      decode<schema::CallNotice>(meta, "call notice", [&](schema::CallNotice::Reader in) -> Status {
        auto actor = to_id<ActorId>(in.getActorId());
        if (!actor.ok()) return actor.status();
        notice.actor = *actor;
        notice.sequence = in.getSequence();
        switch (in.which()) {
          case schema::CallNotice::CANCEL: notice.kind = CallNotice::Kind::kCancel; break;
          case schema::CallNotice::ARGUMENTS_RELEASED:
            notice.kind = CallNotice::Kind::kArgumentsReleased;
            break;
          case schema::CallNotice::RESULT_RELEASED:
            notice.kind = CallNotice::Kind::kResultReleased;
            break;
          case schema::CallNotice::FORCE_CANCEL:
            notice.kind = CallNotice::Kind::kForceCancel;
            break;
          case schema::CallNotice::DRAINED: notice.kind = CallNotice::Kind::kDrained; break;
          case schema::CallNotice::STREAM_ITEM: notice.kind = CallNotice::Kind::kStreamItem; break;
          case schema::CallNotice::STREAM_TAKEN:
            notice.kind = CallNotice::Kind::kStreamTaken;
            notice.taken = in.getStreamTaken();
            break;
          case schema::CallNotice::WAITS:
            notice.kind = CallNotice::Kind::kWaits;
            return read_waits(in, notice.waits);
          default: return unimplemented("a notice of a kind that this version does not know");
        }
        return {};
      });
  if (!status.ok()) return status;
  return notice;
}

Result<Buffer> encode_stream_item(ActorId actor, std::uint64_t sequence, std::uint64_t lend_id,
                                  const ObjectValue& value) {
  return encode_or_fail<schema::CallNotice>([&](schema::CallNotice::Builder out) {
    out.setActorId(to_data(actor));
    out.setSequence(sequence);
    auto item = out.initStreamItem();
    item.setLendId(lend_id);
    return write_value(item.initValue(), value, Own::kPayload, 0);
  });
}

Result<ObjectValue> decode_stream_item(
    const Buffer& meta, Buffer payload, const ObjectContextPtr& context,
    const std::function<std::shared_ptr<const void>(std::uint64_t lend_id)>& make_loan) {
  ObjectValue value;
  Status status =
      decode<schema::CallNotice>(meta, "stream item", [&](schema::CallNotice::Reader in) -> Status {
        if (in.which() != schema::CallNotice::STREAM_ITEM)
          return invalid_argument("no stream item");
        auto item = in.getStreamItem();
        std::shared_ptr<const void> loan;
        if (item.getLendId() != 0) loan = make_loan(item.getLendId());
        return read_value(item.getValue(), std::move(payload), {context, loan}, 0, &value);
      });
  if (!status.ok()) return status;
  return value;
}

Result<std::string> encode_constructor(const std::string& signature, const ObjectValue& arguments,
                                       const ExecutionOptions& execution) {
  Result<Buffer> meta =
      encode_or_fail<schema::ConstructorCall>([&](schema::ConstructorCall::Builder out) {
        out.setSignature(to_text(signature));
        out.setMaxConcurrency(execution.max_concurrency);
        auto groups =
            out.initConcurrencyGroups(static_cast<unsigned>(execution.concurrency_groups.size()));
        unsigned at = 0;
        for (const auto& [name, limit] : execution.concurrency_groups) {
          groups[at].setName(to_text(name));
          groups[at++].setMaxConcurrency(limit);
        }
        auto cores = out.initCpuAffinity(static_cast<unsigned>(execution.cpu_affinity.size()));
        for (unsigned i = 0; i < cores.size(); ++i) cores.set(i, execution.cpu_affinity[i]);
        return write_value(out.initArguments(), arguments, Own::kMessage, 0);
      });
  if (!meta.ok()) return meta.status();
  return std::string(meta->text());
}

Status decode_constructor(const std::string& bytes, const ObjectContextPtr& context,
                          std::string* signature, ObjectValue* arguments,
                          ExecutionOptions* execution) {
  return decode<schema::ConstructorCall>(
      Buffer::copy_of(bytes), "constructor call",
      [&](schema::ConstructorCall::Reader in) -> Status {
        *signature = to_string(in.getSignature());
        execution->max_concurrency = in.getMaxConcurrency();
        for (auto group : in.getConcurrencyGroups()) {
          if (!execution->concurrency_groups
                   .emplace(to_string(group.getName()), group.getMaxConcurrency())
                   .second) {
            return invalid_argument("two concurrency groups of one name");
          }
        }
        for (auto core : in.getCpuAffinity()) execution->cpu_affinity.push_back(core);
        if (Status status = execution->check(); !status.ok()) return status;
        std::shared_ptr<const void>
            no_loan;  // the creating process holds the objects while the actor lives
        return read_value(in.getArguments(), {}, {context, no_loan}, 0, arguments);
      });
}

}  // namespace runtime
