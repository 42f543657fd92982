#include "runtime/call/stored_object.h"

#include <utility>

#include "runtime/call/lineage.h"
#include "runtime/call/object_state.h"
#include "runtime/store/object_loss.h"

namespace runtime {

namespace {

/// Whether reading failed because no copy can be reached.
bool is_loss(const Status& status) {
  return status.code() == ErrorCode::kObjectLost || status.code() == ErrorCode::kUnavailable;
}

}  // namespace

StoredObject::StoredObject(std::shared_ptr<ObjectAccess> store,
                           std::shared_ptr<ObjectRegister> objects, ObjectLocation location,
                           Kind kind)
    : store_(std::move(store)),
      objects_(std::move(objects)),
      original_(std::move(location)),
      kind_(kind) {}

std::shared_ptr<StoredObject> StoredObject::make(std::shared_ptr<ObjectAccess> store,
                                                 std::shared_ptr<ObjectRegister> objects,
                                                 ObjectLocation location, Kind kind) {
  std::shared_ptr<StoredObject> object(
      new StoredObject(std::move(store), std::move(objects), std::move(location), kind));
  object->objects_->add(object, object->original_, kind == Kind::kOwned);
  if (kind == Kind::kPassedOn) object->store_->borrow(object->original_);
  return object;
}

StoredObject::~StoredObject() {
  if (store_->is_forked()) return;
  const bool owned = kind_ == Kind::kOwned;
  objects_->remove(original_, owned);
  if (owned) store_->free(original_);
  if (kind_ == Kind::kPassedOn || kind_ == Kind::kConfirmed) store_->unborrow(original_);
}

ObjectLocation StoredObject::location() const {
  std::lock_guard lock(mutex_);
  return present_location();
}

ObjectLocation StoredObject::present_location() const {
  return present_ ? present_->value().stored->location() : original_;
}

bool StoredObject::is_owned() const {
  std::lock_guard lock(mutex_);
  return present_ ? present_->value().stored->is_owned() : kind_ == Kind::kOwned;
}

Result<Buffer> StoredObject::open(Deadline deadline) {
  for (;;) {
    const ObjectLocation at = location();
    Result<BytesView> view = store_->get(at, deadline);
    if (view.ok()) return view->buffer();
    if (!is_loss(view.status())) return view.status();
    Result<ObjectStatePtr> coming = make_again(at, view.status());
    if (!coming.ok()) return coming.status();
    if (!*coming) continue;
    if (!(*coming)->wait(deadline)) {
      return deadline_exceeded("object " + at.id.hex() + " was lost with node " +
                               at.node.short_hex() + "; " + lineage_->maker() +
                               " is making it again and has not finished in time");
    }
    if (Status status = adopt(*coming); !status.ok()) return status;
  }
}

void StoredObject::recover(Deadline deadline, UniqueFunction<void(Result<ObjectLocation>)> done) {
  const ObjectLocation at = location();
  store_->get(
      at, deadline,
      [self = shared_from_this(), at, done = std::move(done)](Result<BytesView> view) mutable {
        if (view.ok()) return done(at);
        self->replace(at, view.status(), std::move(done));
      });
}

void StoredObject::replace(const ObjectLocation& lost, const Status& why,
                           UniqueFunction<void(Result<ObjectLocation>)> done) {
  bring_back(lost, why, [self = shared_from_this(), done = std::move(done)](Status status) mutable {
    if (status.ok())
      done(self->location());
    else
      done(std::move(status));
  });
}

void StoredObject::bring_back(const ObjectLocation& at, const Status& why,
                              UniqueFunction<void(Status)> done) {
  if (!is_loss(why)) return done(why);
  Result<ObjectStatePtr> coming = make_again(at, why);
  if (!coming.ok()) return done(coming.status());
  if (!*coming) return done({});
  ObjectStatePtr made = *std::move(coming);
  const ObjectState& awaited = *made;
  awaited.then([self = shared_from_this(), made = std::move(made),
                done = std::move(done)]() mutable { done(self->adopt(made)); });
}

void StoredObject::move_to_own_node(Deadline deadline,
                                    std::function<ObjectStatePtr(ObjectValue)> as_object,
                                    UniqueFunction<void(Status)> done) {
  const ObjectLocation at = location();
  store_->take_over(at, deadline,
                    [self = shared_from_this(), as_object = std::move(as_object), at,
                     done = std::move(done)](Result<ObjectLocation> kept) mutable {
                      if (!kept.ok()) return done(kept.status());
                      ObjectValue value;
                      value.stored = make(self->store_, self->objects_, *kept, Kind::kConfirmed);
                      ObjectStatePtr moved = as_object(std::move(value));
                      ObjectStatePtr before;  // dropped after the lock
                      {
                        std::lock_guard lock(self->mutex_);
                        if (self->present_location() == at)
                          before = std::exchange(self->present_, std::move(moved));
                      }
                      done({});
                    });
}

void StoredObject::restore(Deadline deadline, UniqueFunction<void(bool made_again)> done) {
  recover(deadline,
          [at = location(), done = std::move(done)](Result<ObjectLocation> found) mutable {
            done(found.ok() && *found != at);
          });
}

Result<ObjectStatePtr> StoredObject::make_again(const ObjectLocation& lost, const Status& why) {
  std::lock_guard lock(mutex_);
  if (present_location() != lost) return ObjectStatePtr();
  if (coming_) return coming_;
  if (!lineage_) return loss(lost, why, {});
  Result<ObjectStatePtr> made = lineage_->make_again(lost);
  if (!made.ok()) return loss(lost, why, made.status());
  coming_ = *std::move(made);
  return coming_;
}

Status StoredObject::adopt(const ObjectStatePtr& made) {
  std::lock_guard lock(mutex_);
  if (coming_ != made) return {};
  coming_.reset();
  const ObjectLocation lost = present_location();
  if (!made->failure().ok()) return loss(lost, object_lost("its copies are gone"), made->failure());
  if (!made->value().stored || made->value().stored->size() != original_.size) {
    return loss(lost, object_lost("its copies are gone"),
                task_failed("another run gave something of another size, instead of the same"));
  }
  present_ = made;
  return {};
}

Status StoredObject::loss(const ObjectLocation& lost, const Status& why,
                          const Status& not_again) const {
  std::string text = "object " + lost.id.hex() + " of " + std::to_string(lost.size) + " bytes";
  if (lineage_)
    text += ", made by " + lineage_->maker();
  else
    text += kind_ == Kind::kOwned ? ", put by this process" : ", made by another process";
  text += ", is lost with its copy on node " + lost.node.short_hex() + " (" + lost.endpoint + "): ";
  // What the object is has been said.
  const std::size_t reason = why.message().find(kLossInfix);
  text += reason == std::string::npos ? why.message()
                                      : why.message().substr(reason + kLossInfix.size());
  if (!not_again.ok()) text += "; it is not made again: " + not_again.message();
  return object_lost(std::move(text));
}

void StoredObject::open(Deadline deadline, UniqueFunction<void(Result<Buffer>)> done) {
  const ObjectLocation at = location();
  store_->get(at, deadline,
              [self = shared_from_this(), at, deadline,
               done = std::move(done)](Result<BytesView> view) mutable {
                if (view.ok()) return done(view->buffer());
                self->bring_back(at, view.status(),
                                 [self, deadline, done = std::move(done)](Status status) mutable {
                                   if (status.ok())
                                     self->open(deadline, std::move(done));
                                   else
                                     done(std::move(status));
                                 });
              });
}

}  // namespace runtime
