#include "runtime/store/object_client.h"

#include <cstring>
#include <optional>
#include <utility>

#include "runtime/core/timer.h"
#include "runtime/store/awaited.h"
#include "runtime/store/shared_heap.h"

namespace runtime {

namespace {

Status late(const ObjectLocation& location) {
  return deadline_exceeded("object " + location.id.hex() + " on node " + location.node.short_hex() +
                           ": not here within the deadline");
}

}  // namespace

ObjectClient::ObjectClient(std::shared_ptr<Channel> node, ObjectClientOptions options)
    : options_(options), heap_(std::make_shared<SharedHeap>(std::move(node), options)) {}

ObjectClient::~ObjectClient() { heap_->retire(); }

bool ObjectClient::is_forked() const { return heap_->loop().is_forked(); }

Result<WritableObject> ObjectClient::create(std::size_t size, ObjectId id) {
  return create(size, id, deadline_after(options_.lease_timeout));
}

Result<WritableObject> ObjectClient::create(std::size_t size, ObjectId id, Deadline deadline,
                                            const std::stop_token& stop) {
  return heap_->create(size, id, deadline, stop);
}

bool ObjectClient::handle(const std::shared_ptr<Channel>& node, Message& message) {
  if (message.kind != FrameKind::kObject) return false;
  auto request = object_wire::decode_request(message.meta);
  Buffer reply;
  if (!request.ok()) {
    reply = object_wire::encode_failure(request.status());
  } else if (auto* surrender = std::get_if<object_wire::Surrender>(&*request)) {
    reply = object_wire::encode_reply(object_wire::Extents{heap_->surrender(surrender->bytes)});
  } else if (auto* hold = std::get_if<object_wire::Hold>(&*request); hold && hooks_.hold) {
    for (const ObjectLocation& location : hold->locations) hooks_.hold(location);
    reply = object_wire::encode_reply(object_wire::Done{});
  } else if (auto* unhold = std::get_if<object_wire::Unhold>(&*request); unhold && hooks_.unhold) {
    for (const ObjectLocation& location : unhold->locations) hooks_.unhold(location);
    reply = object_wire::encode_reply(object_wire::Done{});
  } else if (std::holds_alternative<object_wire::Report>(*request) && hooks_.report) {
    reply = object_wire::encode_reply(hooks_.report());
  } else if (auto* remake = std::get_if<object_wire::Remake>(&*request); remake && hooks_.remake) {
    Message header;
    header.kind = message.kind;
    header.id = message.id;
    hooks_.remake(remake->location,
                  [node, header = std::move(header)](Result<ObjectLocation> found) {
                    Buffer answer = found.ok() ? object_wire::encode_reply(*found)
                                               : object_wire::encode_failure(found.status());
                    if (header.id != 0) (void)node->send(reply_to(header, std::move(answer)));
                  });
    return true;
  } else if (auto* evacuate = std::get_if<object_wire::Evacuate>(&*request);
             evacuate && hooks_.evacuate) {
    Message header;
    header.kind = message.kind;
    header.id = message.id;
    hooks_.evacuate(evacuate->node, [node, header = std::move(header)](std::uint64_t failed) {
      if (header.id != 0)
        (void)node->send(
            reply_to(header, object_wire::encode_reply(object_wire::Evacuated{failed})));
    });
    return true;
  } else {
    reply = object_wire::encode_failure(invalid_argument("only a node's store serves this"));
  }
  // A failure means that the connection ended, and with it what was surrendered.
  if (message.id != 0) (void)node->send(reply_to(message, std::move(reply)));
  return true;
}

ObjectLocation ObjectClient::seal(WritableObject object) { return heap_->seal(std::move(object)); }

Result<ObjectLocation> ObjectClient::put(std::span<const std::byte> bytes, ObjectId id) {
  auto object = create(bytes.size(), id);
  if (!object.ok()) return object.status();
  if (!bytes.empty()) std::memcpy(object->data().data(), bytes.data(), bytes.size());
  return seal(std::move(*object));
}

void ObjectClient::free(const ObjectLocation& location) { heap_->free(location); }

void ObjectClient::borrow(const ObjectLocation& location) { heap_->borrow(location); }

void ObjectClient::unborrow(const ObjectLocation& location) { heap_->unborrow(location); }

void ObjectClient::borrow_and_confirm(const ObjectLocation& location, Deadline deadline,
                                      UniqueFunction<void(Status)> done) {
  heap_->borrow_and_confirm(location, deadline, std::move(done));
}

void ObjectClient::take_over(const ObjectLocation& location, Deadline deadline,
                             UniqueFunction<void(Result<ObjectLocation>)> done) {
  heap_->take_over(location, deadline, std::move(done));
}

void ObjectClient::keep_all() { heap_->keep_all(); }

void ObjectClient::remake(const ObjectLocation& lost, const std::string& keeper, Deadline deadline,
                          UniqueFunction<void(Result<ObjectLocation>)> done) {
  heap_->remake(lost, keeper, deadline, std::move(done));
}

// An answer that comes after the deadline still carries a pin; dropping the view gives it back.
Result<BytesView> ObjectClient::get(const ObjectLocation& location, Deadline deadline) {
  auto waiting = std::make_shared<Awaited<Result<BytesView>>>(heap_->loop());
  heap_->get(location, deadline,
             [waiting](Result<BytesView> result) { (void)waiting->offer(result); });
  auto result = waiting->wait(deadline);
  if (!result) return late(location);
  return std::move(*result);
}

void ObjectClient::get(const ObjectLocation& location, Deadline deadline,
                       UniqueFunction<void(Result<BytesView>)> done) {
  struct Waiting {
    Waiting(EventLoop& loop, UniqueFunction<void(Result<BytesView>)> callback)
        : timer(loop.context()), done(std::move(callback)) {}
    Timer timer;  // on the loop only
    std::mutex mutex;
    UniqueFunction<void(Result<BytesView>)> done;
    UniqueFunction<void(Result<BytesView>)> take() {
      std::lock_guard lock(mutex);
      return std::move(done);
    }
  };
  EventLoop& loop = heap_->loop();
  auto waiting = std::make_shared<Waiting>(loop, std::move(done));
  heap_->get(location, deadline, [&loop, waiting](Result<BytesView> result) {
    auto callback = waiting->take();
    if (!callback) return;
    if (loop.in_loop()) waiting->timer.cancel();
    callback(std::move(result));
  });
  loop.post([waiting, location, deadline] {
    {
      std::lock_guard lock(waiting->mutex);
      if (!waiting->done) return;
    }
    waiting->timer.expires_at(deadline);
    waiting->timer.async_wait([waiting, location](const boost::system::error_code& ec) {
      if (ec) return;
      if (auto callback = waiting->take()) callback(late(location));
    });
  });
}

}  // namespace runtime
