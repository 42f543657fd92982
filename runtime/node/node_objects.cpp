#include "runtime/node/node_objects.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "runtime/node/object_report.h"
#include "runtime/store/segment.h"

namespace runtime {

namespace {

/// Whether the node is in the cluster; true when that is not known.
void ask_membership(const AskHead& head, NodeId node, UniqueFunction<void(bool)> done) {
  head(ControlRequest{{}, std::chrono::seconds(5), control::WatchNodes{}},
       [node, done = std::move(done)](Result<ControlAnswer> answer) mutable {
         auto* list = answer.ok() ? std::get_if<control::NodeList>(&*answer) : nullptr;
         if (!list) return done(true);
         done(std::any_of(list->nodes.begin(), list->nodes.end(),
                          [&](const NodeInfo& info) { return info.node == node; }));
       });
}

/// Where an object is whose node was drained.
void ask_where_moved(const AskHead& head, const ObjectLocation& lost,
                     UniqueFunction<void(Result<ObjectLocation>)> done) {
  ControlRequest request{
      {}, std::chrono::seconds(10), ObjectControl{control::FindObject{lost.id, lost.node}}};
  head(std::move(request), [done = std::move(done)](Result<ControlAnswer> answer) mutable {
    if (!answer.ok()) return done(answer.status());
    auto* objects = std::get_if<ObjectControlAnswer>(&*answer);
    auto* location = objects ? std::get_if<ObjectLocation>(objects) : nullptr;
    if (location)
      done(std::move(*location));
    else
      done(internal_error("the head answered something else than was asked"));
  });
}

}  // namespace

Result<std::unique_ptr<NodeObjects>> NodeObjects::open(EventLoop& loop, ObjectStoreOptions options,
                                                       const AskHead& head) {
  const NodeId node = options.credentials.node;
  // Else a few processes' slabs would take all of a small store.
  if (options.capacity_bytes != 0)
    options.slab_bytes = std::clamp(round_to_pages(options.capacity_bytes / 16),
                                    std::uint64_t{64} << 10, options.slab_bytes);
  options.is_member = [head](NodeId other, UniqueFunction<void(bool)> done) {
    ask_membership(head, other, std::move(done));
  };
  options.find_moved = [head](const ObjectLocation& lost,
                              UniqueFunction<void(Result<ObjectLocation>)> done) {
    ask_where_moved(head, lost, std::move(done));
  };
  auto store = ObjectStore::create(loop, options);
  if (!store.ok()) return store.status();
  return std::unique_ptr<NodeObjects>(new NodeObjects(node, std::move(*store)));
}

void NodeObjects::serve(ObjectControl& request, std::chrono::milliseconds timeout,
                        ControlAnswerer answer) {
  if (auto* adopt = std::get_if<control::AdoptObject>(&request)) {
    return store_->adopt(adopt->location,
                         [answer = std::move(answer)](Result<ObjectLocation> kept) mutable {
                           if (kept.ok())
                             answer(ControlAnswer{ObjectControlAnswer{std::move(*kept)}});
                           else
                             answer(kept.status());
                         });
  }
  if (auto* drop = std::get_if<control::DropObject>(&request)) {
    store_->drop(drop->location);
    return answer(ControlAnswer{});
  }
  if (auto* find = std::get_if<control::FindObject>(&request)) {
    auto kept = store_->find_adopted(find->object);
    if (!kept) return answer(not_found("node " + node_.short_hex() + " does not keep the object"));
    return answer(ControlAnswer{ObjectControlAnswer{std::move(*kept)}});
  }
  if (std::holds_alternative<control::ListObjects>(request)) {
    // A process that hangs must not keep the others' answers.
    return store_->list(timeout / 2,
                        [node = node_, answer = std::move(answer)](StoreList list) mutable {
                          answer(ControlAnswer{ObjectControlAnswer{object_list(node, list)}});
                        });
  }
  answer(unimplemented("the head asks a node for something about objects that nodes do not do"));
}

void NodeObjects::take_over(const control::TakeOver& request, std::chrono::milliseconds timeout,
                            ControlAnswerer answer) {
  store_->take_over_from(
      request.node, timeout, [answer = std::move(answer)](std::uint64_t failed) mutable {
        answer(ControlAnswer{static_cast<std::int64_t>(std::min<std::uint64_t>(failed, 1u << 30))});
      });
}

}  // namespace runtime
