// The templates of Runtime, which only turn types into bytes. Included by runtime.h.
#pragma once

#include "runtime/call/get.h"
#include "runtime/runtime.h"

namespace runtime {

/// The CoroutineInvoker of method type M on class T. Defined in runtime/coroutine.h: where this is
/// undefined, include that.
template <class T, class M>
boost::asio::awaitable<Status, boost::asio::any_io_executor> invoke_coroutine(
    std::shared_ptr<CoroutineState> call);

namespace runtime_detail {

template <class T, class M>
MethodEntry method_entry(M pointer) {
  MethodEntry entry;
  entry.key = MethodKey::of(pointer);
  if constexpr (MethodTraits<M>::kIsCoroutine)
    entry.coroutine = &invoke_coroutine<T, M>;
  else
    entry.invoke = &invoke_method<T, M>;
  entry.takes_context = MethodTraits<M>::kTakesContext;
  entry.is_stream = MethodTraits<M>::kIsStream;
  return entry;
}
template <class T, class M>
MethodEntry method_entry(NamedMethod<M> named) {
  MethodEntry entry = method_entry<T>(named.pointer);
  entry.name = std::move(named.name);
  entry.concurrency_group = std::move(named.options.concurrency_group);
  entry.timeout = named.options.timeout;
  return entry;
}

/// `run` may return int or Status.
int exit_code(int code);
int exit_code(const Status& status);

}  // namespace runtime_detail

template <class T, class... Methods>
void Runtime::register_actor(std::string name, Methods... methods) {
  ActorClass& added = add_class(std::move(name), typeid(T));
  (added.add(runtime_detail::method_entry<T>(std::move(methods))), ...);
  added.set_drain_hook(drain_hook<T>());
  if constexpr (SavesState<T>) {
    added.set_state_hooks(state_hooks<T>());
    MethodEntry save;
    save.key = save_state_key();
    save.name = "save_state";
    save.invoke = &invoke_save_state<T>;
    added.add(std::move(save));
  }
}

template <class R, class... P>
void Runtime::register_function(std::string name, R (*function)(P...)) {
  functions().add(runtime_detail::method_entry<TaskRunner>(method(std::move(name), function)));
}

template <class R, class... P, class... Args>
auto Runtime::task(R (*function)(P...), const Args&... args) {
  return task(TaskOptions{}, function, args...);
}

template <class R, class... P, class... Args>
auto Runtime::task(const TaskOptions& options, R (*function)(P...), const Args&... args) {
  using Traits = MethodTraits<R (*)(P...)>;
  static_assert(!Traits::kIsStream, "a task has one result: to yield many, use an actor's method");
  using Ref = ObjectRef<typename Traits::Value>;
  return with_arguments<typename Traits::Params>(
      [&](Encoder& encoder) { return Ref(submit_task(MethodKey::of(function), options, encoder)); },
      args...);
}

template <class Main>
int Runtime::run(Main driver_main) {
  if (is_worker()) return run_worker();
  if (Status status = start(); !status.ok()) return runtime_detail::exit_code(status);
  int code = runtime_detail::exit_code(driver_main(*this));
  stop(code);
  return code;
}

template <class T, class... Args>
Result<PendingActor> Runtime::begin_spawn(const ActorOptions& options, const Args&... args) {
  using Made = Constructor<T, constructor_detail::Param<Args>...>;
  return with_arguments<std::tuple<constructor_detail::Param<Args>...>>(
      [&](Encoder& encoder) {
        return start_actor(Made::entry.type, Made::entry.signature, options, encoder);
      },
      args...);
}

template <class T, class... Args>
Result<ActorHandle<T>> Runtime::spawn(const ActorOptions& options, const Args&... args) {
  Result<PendingActor> pending = begin_spawn<T>(options, args...);
  if (!pending.ok()) return pending.status();
  Result<std::shared_ptr<ActorClient>> client = finish_actor(*pending);
  if (!client.ok()) return client.status();
  return ActorHandle<T>(*std::move(client), {options.call_timeout, options.max_task_retries});
}

template <class T, class... Args>
Result<ActorGroup<T>> Runtime::spawn_group(std::size_t size, const ActorOptions& options,
                                           const Args&... args) {
  std::vector<ActorOptions> each(size, options);
  for (std::size_t rank = 0; rank < size && !options.name.empty(); ++rank)
    each[rank].name += "-" + std::to_string(rank);
  return spawn_group<T>(each, args...);
}

template <class T, class... Args>
Result<ActorGroup<T>> Runtime::spawn_group(const std::vector<ActorOptions>& options,
                                           const Args&... args) {
  if (!(group_detail::has_size(args, options.size()) && ...)) {
    return invalid_argument("a group of " + std::to_string(options.size()) +
                            " needs one part of split() for each member");
  }
  std::vector<Result<PendingActor>> pending;
  for (std::size_t rank = 0; rank < options.size(); ++rank) {
    pending.push_back(begin_spawn<T>(options[rank], group_detail::pick(args, rank)...));
  }
  auto clients = finish_group(pending);
  if (!clients.ok()) return clients.status();
  std::vector<ActorHandle<T>> members;
  for (std::size_t rank = 0; rank < options.size(); ++rank)
    members.push_back(ActorHandle<T>((*clients)[rank],
                                     {options[rank].call_timeout, options[rank].max_task_retries}));
  return ActorGroup<T>(std::move(members));
}

template <class T>
Result<ActorHandle<T>> Runtime::get_actor(const std::string& name, Until until) {
  return get_actor<T>(name, std::string(), until);
}

template <class T>
Result<ActorHandle<T>> Runtime::get_actor(const std::string& name, const std::string& name_space,
                                          Until until) {
  auto client = find_actor(typeid(T), name, name_space, until.at());
  if (!client.ok()) return client.status();
  return ActorHandle<T>(*std::move(client));
}

template <class T>
Status Runtime::kill(const ActorHandle<T>& actor, Until until) {
  return kill_actor(actor.id(), Restarts::kNone, until.at());
}

template <class T>
Status Runtime::kill(const ActorHandle<T>& actor, Restarts restarts, Until until) {
  return kill_actor(actor.id(), restarts, until.at());
}

template <class T>
Status Runtime::terminate(const ActorHandle<T>& actor, Until until) {
  return terminate_actor(actor.id(), until.at());
}

template <class T>
Status Runtime::restart(const ActorHandle<T>& actor, Until until) {
  return restart_actor(actor.id(), until.at());
}

template <class T>
requires SavesState<T> Status Runtime::save_state(const ActorHandle<T>& actor, Until until) {
  return save_actor_state(actor.client().get(), typeid(T), until.at());
}

template <SavesState T>
Status Runtime::save_state(const T& self, Until until) {
  return save_own_state(&self, state_hooks<T>(), until.at());
}

template <class T, class... Args>
Result<ScopedActor<T>> Runtime::spawn_scoped(const ActorOptions& options, const Args&... args) {
  Result<ActorHandle<T>> actor = spawn<T>(options, args...);
  if (!actor.ok()) return actor.status();
  auto end = [this, id = actor->id()] {
    (void)terminate_actor(id, Until(std::chrono::seconds(30)).at());
  };
  return ScopedActor<T>(*std::move(actor), std::move(end));
}

template <class T>
Watch Runtime::watch(const ActorHandle<T>& actor, std::function<void(const ActorEvent&)> callback) {
  return watch_actor(actor.id(), std::move(callback));
}

template <class T>
Status Runtime::kill(const ActorGroup<T>& group, Until until) {
  std::vector<ActorId> actors;
  for (const auto& member : group) actors.push_back(member.id());
  return kill_actors(std::move(actors), until.at());
}

template <class T>
Status Runtime::cancel(const ObjectRef<T>& ref, CancelMode mode) {
  return cancel_call(ref.state(), mode);
}

template <class T>
Result<ObjectRef<T>> Runtime::put(const T& value, Until until) {
  Encoder encoder;
  encode_value(encoder, value);
  Result<ObjectStatePtr> state = put_encoded(encoder, until.at());
  if (!state.ok()) return state.status();
  return ObjectRef<T>(*std::move(state));
}

template <class T>
Result<T> Runtime::get(const ObjectRef<T>& ref, Until until) {
  return get_value(ref, until.at());
}

template <class T>
WaitResult<T> Runtime::wait(const std::vector<ObjectRef<T>>& refs, std::size_t count, Until until) {
  std::vector<ObjectStatePtr> states;
  for (const auto& ref : refs) {
    if (ref.is_valid()) states.push_back(ref.state());
  }
  wait_for(states, count, until.at());
  WaitResult<T> result;
  for (const auto& ref : refs) (ref.is_ready() ? result.ready : result.pending).push_back(ref);
  return result;
}

}  // namespace runtime
