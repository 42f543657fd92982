#include "cycle_actors.h"

#include "cycle_constructors.h"
#include "cycle_relay.h"

namespace runtime::test {

Result<int> Link::pass_by_constructor(int create_ms) {
  ActorOptions options;
  if (create_ms > 0) options.create_timeout = std::chrono::milliseconds(create_ms);
  const auto made = runtime_.spawn<Dependent>(options, next_);
  return made.ok() ? one_more(runtime_.get(made->call(&Dependent::sum)))
                   : Result<int>(made.status());
}

Result<int> Link::pass_by_coroutine(ActorHandle<Relay> relay, int limit_ms) {
  return one_more(runtime_.get(relay.call(&Relay::forward, next_, limit_ms)));
}

Result<int> Link::pass_by_blocked(ActorHandle<Relay> relay) {
  return one_more(runtime_.get(relay.call(&Relay::forward_blocked, next_)));
}

void register_cycle_actors(Runtime& rt) {
  passing_runtime = &rt;
  rt.register_actor<Link>("Link", &Link::follow, &Link::pass, &Link::pass_twice, &Link::pass_within,
                          &Link::pass_together, &Link::pass_by_task, &Link::pass_by_constructor,
                          &Link::pass_by_coroutine, &Link::pass_by_blocked);
  rt.register_actor<Dependent>("Dependent", &Dependent::sum);
  rt.register_actor<Relay>("Relay", &Relay::forward, &Relay::forward_first, &Relay::forward_blocked,
                           &Relay::forward_to_itself, &Relay::idle);
  rt.register_function("pass_of", &pass_of);
  register_cycle_constructors(rt);
}

}  // namespace runtime::test
