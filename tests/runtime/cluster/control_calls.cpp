#include "control_calls.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "history.h"
#include "runtime/runtime.h"

namespace runtime::test {

namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 4;

using Calls = std::vector<const ControlCall*>;

/// By what they are about: of one kind, or of two that belong together.
std::map<std::string, Calls> calls_of(const std::vector<ControlCall>& calls, ControlOp op,
                                      ControlOp other) {
  std::map<std::string, Calls> found;
  for (const ControlCall& call : calls) {
    if (call.op == op || call.op == other) found[call.key].push_back(&call);
  }
  return found;
}

void check_sums(const Calls& adds, std::vector<std::string>& wrong) {
  Calls by_sum = adds;
  std::sort(by_sum.begin(), by_sum.end(),
            [](const auto* a, const auto* b) { return a->value < b->value; });
  std::int64_t latest_begin = 0;
  for (std::size_t i = 0; i < by_sum.size(); ++i) {
    const ControlCall& add = *by_sum[i];
    if (add.value != static_cast<std::int64_t>(i) + 1)
      return wrong.push_back("an addition happened twice, or not at all: sum " +
                             std::to_string(i + 1) + " is missing at " + add.to_string());
    if (add.end < latest_begin) wrong.push_back("against the order of time: " + add.to_string());
    latest_begin = std::max(latest_begin, add.begin);
  }
}

/// Of calls of which exactly one may win.
void check_winner(const Calls& calls, const std::string& what, bool (*has_won)(const ControlCall&),
                  std::vector<std::string>& wrong) {
  const auto is_winner = [&](const auto* call) { return has_won(*call); };
  const auto winners = std::count_if(calls.begin(), calls.end(), is_winner);
  if (winners != 1)
    return wrong.push_back(std::to_string(winners) + " calls " + what + " " +
                           calls.front()->to_string());
  const ControlCall& winner = **std::find_if(calls.begin(), calls.end(), is_winner);
  for (const ControlCall* call : calls) {
    if (call != &winner && call->end < winner.begin)
      wrong.push_back("refused before another call " + what + " " + call->to_string());
  }
}

void check_reads(const Calls& calls, std::vector<std::string>& wrong) {
  std::int64_t last = 0;
  for (const ControlCall* call : calls) {
    if (call->op == ControlOp::kPut) last = call->value;
    if (call->op == ControlOp::kRead && call->value != last)
      wrong.push_back("not the last value, " + std::to_string(last) + ": " + call->to_string());
  }
}

class ControlCaller {
 public:
  explicit ControlCaller(Runtime& rt) : rt_(rt) {}

  std::vector<ControlCall> run(std::chrono::milliseconds duration) {
    const auto end = std::chrono::steady_clock::now() + duration;
    std::barrier meeting(kThreads);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([this, thread, end, &meeting] {
        for (int round = 1;; ++round) {
          if (thread == 0) goes_on_ = std::chrono::steady_clock::now() < end;
          prepare(thread, round);
          meeting.arrive_and_wait();
          if (!goes_on_) return;
          compete(thread, round);
          use_own(thread, round);
          meeting.arrive_and_wait();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return std::move(calls_);
  }

 private:
  template <class Made>
  ErrorCode record(ControlOp op, std::string key, std::int64_t value, Made make) {
    ControlCall call{op, std::move(key), value, ErrorCode::kOk, now_us()};
    const Status status = make(call);
    call.end = now_us();
    call.code = status.code();
    call.message = status.message();
    const ErrorCode code = call.code;
    std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    return code;
  }

  void add(const std::string& key) {
    record(ControlOp::kAdd, key, 0, [&](ControlCall& call) {
      auto sum = rt_.kv().add(key, 1);
      call.value = sum.value_or(0);
      return sum.status();
    });
  }
  void put(const std::string& key, std::int64_t value) {
    record(ControlOp::kPut, key, value,
           [&](ControlCall&) { return rt_.kv().put(key, std::to_string(value)); });
  }
  void read(const std::string& key) {
    record(ControlOp::kRead, key, 0, [&](ControlCall& call) {
      auto text = rt_.kv().try_get(key);
      call.value = text.ok() ? std::stoll(*text) : 0;
      return text.status();
    });
  }
  void erase(const std::string& key) {
    record(ControlOp::kDelete, key, 0, [&](ControlCall& call) {
      auto was_there = rt_.kv().remove(key);
      call.value = was_there.value_or(false);
      return was_there.status();
    });
  }
  /// Each second one lies in a node's store.
  void publish(const std::string& name, int version) {
    record(ControlOp::kPublish, name + "@" + std::to_string(version), version, [&](ControlCall&) {
      auto object = rt_.put(std::vector<float>(version % 2 == 0 ? 10 : 50'000, 1.0F));
      if (!object.ok()) return object.status();
      return rt_.published().publish(name, static_cast<std::uint64_t>(version), *object);
    });
  }
  void unpublish(const std::string& name, int version) {
    record(ControlOp::kUnpublish, name + "@" + std::to_string(version), version, [&](ControlCall&) {
      return rt_.published().unpublish(name, static_cast<std::uint64_t>(version));
    });
  }
  GroupId create() {
    GroupSpec spec;
    spec.group = GroupId::random();
    spec.bundles = {{{"CPU", 0.01}}};
    record(ControlOp::kCreate, spec.group.hex(), 0,
           [&](ControlCall&) { return rt_.groups().create(spec).get().status(); });
    return spec.group;
  }
  void remove(GroupId group) {
    record(ControlOp::kRemove, group.hex(), 0,
           [&](ControlCall&) { return rt_.get(rt_.groups().remove(group, 30s)); });
  }

  /// Something that all threads then want.
  void prepare(int thread, int round) {
    if (thread == 1) put("claim-" + std::to_string(round), 1);
    if (thread == 2) shared_group_ = create();
  }
  void compete(int thread, int round) {
    erase("claim-" + std::to_string(round));
    add("shared");
    publish("shared", round);
    remove(shared_group_);
    if (thread == 3) add("shared");
  }
  void use_own(int thread, int round) {
    const std::string own = "own-" + std::to_string(thread);
    put(own, round);
    read(own);
    add("sum-" + std::to_string(thread));
    publish(own, round);
    publish(own, round);
    unpublish(own, round);
    unpublish(own, round);
    const GroupId group = create();
    remove(group);
    remove(group);
  }

  Runtime& rt_;
  std::atomic<bool> goes_on_{true};
  GroupId shared_group_;  // between the meetings
  std::mutex mutex_;
  std::vector<ControlCall> calls_;
};

}  // namespace

std::string ControlCall::to_string() const {
  static constexpr const char* kNames[] = {"add",     "put",       "read",   "delete",
                                           "publish", "unpublish", "create", "remove"};
  return std::string(kNames[static_cast<int>(op)]) + " " + key + " = " + std::to_string(value) +
         " (" + std::string(runtime::to_string(code)) + (ok() ? "" : ": " + message) + "), " +
         std::to_string(begin) + " to " + std::to_string(end);
}

std::vector<std::string> control_violations(const std::vector<ControlCall>& calls) {
  std::vector<std::string> wrong;
  for (const ControlCall& call : calls) {
    const bool is_refused =
        (call.op == ControlOp::kPublish && call.code == ErrorCode::kInvalidArgument) ||
        (call.op == ControlOp::kUnpublish && call.code == ErrorCode::kNotFound) ||
        (call.op == ControlOp::kRemove && call.code == ErrorCode::kNotFound);
    if (!call.ok() && !is_refused) wrong.push_back("not answered well: " + call.to_string());
  }
  if (!wrong.empty()) return wrong;
  const auto is_ok = [](const ControlCall& call) { return call.ok(); };
  const auto was_there = [](const ControlCall& call) { return call.value != 0; };
  for (const auto& [key, adds] : calls_of(calls, ControlOp::kAdd, ControlOp::kAdd))
    check_sums(adds, wrong);
  for (const auto& [key, same] : calls_of(calls, ControlOp::kPut, ControlOp::kRead))
    check_reads(same, wrong);
  for (const auto& [key, same] : calls_of(calls, ControlOp::kDelete, ControlOp::kDelete))
    check_winner(same, "deleted", was_there, wrong);
  for (const auto& [key, same] : calls_of(calls, ControlOp::kPublish, ControlOp::kPublish))
    check_winner(same, "published", is_ok, wrong);
  for (const auto& [key, same] : calls_of(calls, ControlOp::kUnpublish, ControlOp::kUnpublish))
    check_winner(same, "unpublished", is_ok, wrong);
  for (const auto& [key, same] : calls_of(calls, ControlOp::kRemove, ControlOp::kRemove))
    check_winner(same, "removed", is_ok, wrong);
  return wrong;
}

std::vector<ControlCall> make_control_calls(Runtime& rt, std::chrono::milliseconds duration) {
  return ControlCaller(rt).run(duration);
}

}  // namespace runtime::test
