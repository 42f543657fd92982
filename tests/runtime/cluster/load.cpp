#include "load.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "cluster.h"
#include "runtime/call/actor_scope.h"
#include "tests/support/pauses.h"

namespace runtime::test {

using namespace std::chrono_literals;

namespace {

std::atomic<bool> terminated{false};

ActorOptions tally_options(const std::string& name) {
  ActorOptions options;
  options.name = name;
  options.name_space = kNameSpace;
  options.get_if_exists = true;
  options.detached = true;
  options.max_restarts = -1;
  options.create_timeout = 60s;
  return options;
}

/// How long this process has not been run: what a sleeper oversleeps.
class Stalls {
 public:
  Stalls() : thread_([this] { watch(); }) {}
  ~Stalls() {
    stopping_ = true;
    thread_.join();
  }
  /// The stall that has just ended counts, though the thread that watches has yet to wake from it.
  std::int64_t total() const {
    std::lock_guard lock(mutex_);
    return total_ + overslept();
  }

 private:
  static constexpr std::int64_t kNapUs = 10'000;
  static constexpr std::int64_t kNoticedUs = 20'000;

  std::int64_t overslept() const {
    const std::int64_t over = now_us() - asleep_since_ - kNapUs;
    return over > kNoticedUs ? over : 0;
  }

  void watch() {
    while (!stopping_) {
      support::pace(std::chrono::microseconds(kNapUs));
      std::lock_guard lock(mutex_);
      total_ += overslept();
      asleep_since_ = now_us();
    }
  }

  mutable std::mutex mutex_;
  std::int64_t total_ = 0;
  std::int64_t asleep_since_ = now_us();
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

class Load {
 public:
  Load(Runtime& runtime, const LoadOptions& options)
      : rt_(runtime), options_(options), file_(options.history) {
    end_ = options_.seconds > 0 ? now_us() + static_cast<std::int64_t>(options_.seconds * 1e6)
                                : INT64_MAX;
  }

  int run() {
    std::vector<std::thread> threads;
    const auto start = [&](char kind, void (Load::*work)()) {
      if (options_.kinds.find(kind) != std::string::npos)
        threads.emplace_back([this, work] { (this->*work)(); });
    };
    start('a', &Load::add_marks);
    start('e', &Load::echo);
    start('c', &Load::create);
    start('p', &Load::put_pairs);
    start('s', &Load::sum);
    start('v', &Load::publish);
    start('n', &Load::take_names);
    start('w', &Load::keep_a_gang);
    for (std::thread& thread : threads) thread.join();
    return lost_ ? 9 : 0;
  }

 private:
  /// Calls `work` at the load's pace until the end.
  void repeat(double per_second, const std::function<void(std::int64_t round)>& work) {
    const auto pause = static_cast<std::int64_t>(1e6 / per_second);
    std::int64_t next = now_us();
    for (std::int64_t round = 1; !over(); ++round) {
      work(round);
      next = std::max(next + pause, now_us() - pause);
      for (std::int64_t left = next - now_us(); left > 0 && !over(); left = next - now_us())
        support::pace(std::chrono::microseconds(std::min<std::int64_t>(left, 20'000)));
    }
  }
  bool over() const { return lost_ || terminated || now_us() >= end_; }

  Event begin(Op op, std::string key, std::int64_t value, std::chrono::milliseconds patience) {
    Event event{.client = options_.client,
                .op = op,
                .key = std::move(key),
                .value = value,
                .begin = now_us(),
                .patience = patience.count() * 1000};
    event.stalled = stalls_.total();
    file_.begin(event);
    return event;
  }
  void end(Event event, const Status& status) {
    event.end = now_us();
    event.stalled = stalls_.total() - event.stalled;
    event.code = status.code();
    event.text = status.message();
    file_.end(event);
    // The node of this driver has gone: it answers with kUnavailable at once, and again.
    unavailable_ = status.code() == ErrorCode::kUnavailable ? unavailable_ + 1 : 0;
    if (unavailable_ > 40) lost_ = true;
  }

  ActorHandle<Tally>* tally(const std::string& name) {
    auto known = tallies_.find(name);
    if (known != tallies_.end()) return &known->second;
    auto made = rt_.spawn<Tally>(tally_options(name), name, options_.history);
    if (!made.ok()) {
      support::pace(std::chrono::milliseconds(100));
      return nullptr;
    }
    return &tallies_.emplace(name, *made).first->second;
  }

  void add_marks() {
    repeat(options_.per_second, [this](std::int64_t round) {
      const std::string name = "tally-" + std::to_string(round % options_.tallies);
      ActorHandle<Tally>* handle = tally(name);
      if (!handle) return;
      constexpr auto kPatience = 6s;
      Event event = begin(Op::kAdd, name, round, kPatience);
      auto answered = rt_.get(
          handle->call(CallOptions{.timeout = kPatience}, &Tally::add, options_.client, round));
      if (answered.ok()) event.incarnation = *answered;
      end(event, answered.status());
    });
  }

  void echo() {
    std::optional<ActorHandle<Relay>> relay;
    std::optional<ActorHandle<Echo>> echo;
    const std::string key = "relay-" + std::to_string(options_.client);
    repeat(5 * options_.per_second, [&](std::int64_t round) {
      if (!relay || !echo) {
        ActorOptions options;
        options.create_timeout = 30s;
        options.max_restarts = -1;
        options.labels = echo_labels();
        auto made = rt_.spawn<Echo>(options);
        options.labels = {};
        auto caller = rt_.spawn<Relay>(options);
        if (!made.ok() || !caller.ok()) return;
        echo = *made;
        relay = *caller;
      }
      constexpr auto kPatience = 6s;
      Event event = begin(Op::kEcho, key, round, kPatience);
      auto answered =
          rt_.get(relay->call(CallOptions{.timeout = kPatience}, &Relay::ask, *echo, round));
      const bool right = !answered.ok() || *answered == round;
      end(event, right ? answered.status() : Status(ErrorCode::kInternal, "another call's answer"));
    });
  }
  static Labels echo_labels() {
    const char* where = std::getenv("LOAD_ECHO_LABEL");
    return where ? Labels{{"at", where}} : Labels{};
  }

  void create() {
    repeat(std::min(options_.per_second, 2.0), [this](std::int64_t round) {
      constexpr auto kPatience = 20s;
      Event event = begin(Op::kCreate, "-", round, 2 * kPatience + 5s);
      ActorOptions options;
      options.create_timeout = kPatience;
      auto made = rt_.spawn<Echo>(options);
      Status status = made.status();
      if (made.ok()) {
        status = rt_.get(made->call(CallOptions{.timeout = 5s}, &Echo::say, round)).status();
        // However long the head is away: what is left would take a place for good.
        (void)rt_.kill(*made, kPatience);
      }
      end(event, status);
    });
  }

  void put_pairs() {
    std::vector<std::int64_t> there;
    std::minstd_rand random(static_cast<unsigned>(options_.client));
    repeat(options_.per_second, [&](std::int64_t round) {
      const auto key = [this](std::int64_t at) {
        return "pair-" + std::to_string(options_.client) + "-" + std::to_string(at);
      };
      Event event = begin(Op::kPut, key(round), round, 6s);
      const Status put = rt_.kv().put(key(round), std::to_string(round * 7), 6s);
      end(event, put);
      if (put.ok()) there.push_back(round);
      if (there.empty() || round % 3 != 0) return;
      const std::int64_t at = there[random() % there.size()];
      Event read = begin(Op::kGet, key(at), at, 6s);
      auto got = rt_.kv().try_get(key(at), 6s);
      const bool right = !got.ok() || *got == std::to_string(at * 7);
      end(read, right ? got.status() : Status(ErrorCode::kInternal, "it is " + *got));
    });
  }

  void sum() {
    repeat(options_.per_second, [this](std::int64_t) {
      const std::string key = "sum-" + std::to_string(options_.client);
      Event event = begin(Op::kSum, key, 0, 6s);
      auto sum = rt_.kv().add(key, 1, 6s);
      if (sum.ok()) event.value = *sum;
      end(event, sum.status());
    });
  }

  void publish() {
    const std::string name = "weights-" + std::to_string(options_.client);
    repeat(std::min(options_.per_second, 10.0), [&](std::int64_t round) {
      auto made = rt_.put(std::vector<std::int64_t>(16, round));
      if (!made.ok()) return;
      Event event = begin(Op::kPublish, name, round, 6s);
      PublishOptions options;
      options.name_space = kNameSpace;
      end(event,
          rt_.published().publish(name, static_cast<std::uint64_t>(round), *made, options, 6s));
    });
  }

  void take_names() {
    std::int64_t last = 0;
    std::optional<ActorHandle<Echo>> taken;
    repeat(4, [&](std::int64_t) {
      const std::int64_t number =
          now_us() / 2'000'000;  // all clients want the same at the same time
      if (number == last) return;
      last = number;
      ActorOptions options;
      options.name = "name-" + std::to_string(number);
      options.name_space = kNameSpace;
      options.create_timeout = 10s;
      Event event = begin(Op::kName, options.name, number, 15s);
      auto made = rt_.spawn<Echo>(options);
      end(event, made.status());
      if (taken) (void)rt_.kill(*taken, 2s);  // of an earlier name, that is not wanted any more
      taken.reset();
      if (made.ok()) taken = *made;
    });
  }

  /// Two actors on two nodes that stay together, whatever becomes of these.
  void keep_a_gang() {
    GroupSpec spec;
    std::vector<ActorId> members;
    const std::string key = "gang-" + std::to_string(options_.client);
    repeat(std::min(options_.per_second, 5.0), [&](std::int64_t round) {
      if (members.empty()) {
        spec = {GroupId::random(),
                "",
                GroupStrategy::kStrictSpread,
                {{{"CPU", 0.25}}, {{"CPU", 0.25}}}};
        if (!rt_.groups().create(spec, 30s).get().ok()) return;
        for (std::uint32_t bundle = 0; bundle < spec.bundles.size(); ++bundle) {
          ActorOptions options;
          options.create_timeout = 30s;
          options.max_restarts = -1;
          options.bundle = BundleSlot{spec.group, bundle};
          auto made = rt_.spawn<Echo>(options);
          members.push_back(made.ok() ? made->id() : ActorId());
          if (made.ok()) gang_.push_back(*made);
        }
      }
      Event event = begin(Op::kGang, key, round, 6s);
      auto state = rt_.cluster().state(6s);
      const std::string torn = state.ok() ? what_is_torn(*state, spec.group, members) : "";
      end(event, torn.empty() ? state.status() : Status(ErrorCode::kInternal, torn));
    });
  }
  /// What the cluster says of a gang that must not be; empty: nothing.
  static std::string what_is_torn(const ClusterState& state, GroupId id,
                                  const std::vector<ActorId>& members) {
    const auto group =
        std::find_if(state.groups.begin(), state.groups.end(),
                     [id](const GroupState& other) { return other.spec.group == id; });
    if (group == state.groups.end()) return "the group is gone";
    if (!group->placed) return "";
    if (group->nodes.size() != members.size())
      return "only " + std::to_string(group->nodes.size()) + " of its bundles are placed";
    if (group->nodes[0] == group->nodes[1])
      return "both of its bundles are on node " + group->nodes[0].short_hex();
    for (const ActorState& actor : state.actors) {
      const auto member = std::find(members.begin(), members.end(), actor.actor);
      if (member == members.end() || actor.phase == ActorPhase::kPending ||
          actor.phase == ActorPhase::kDead)
        continue;
      const NodeId place = group->nodes[static_cast<std::size_t>(member - members.begin())];
      if (actor.node != place)
        return "actor " + actor.actor.short_hex() + " is on node " + actor.node.short_hex() +
               ", and its bundle on " + place.short_hex();
    }
    return "";
  }

  Runtime& rt_;
  const LoadOptions options_;
  HistoryFile file_;
  Stalls stalls_;
  std::int64_t end_ = 0;
  std::map<std::string, ActorHandle<Tally>> tallies_;  // of the thread that makes marks
  std::vector<ActorHandle<Echo>> gang_;                // of the thread that keeps one
  std::atomic<int> unavailable_{0};
  std::atomic<bool> lost_{false};
};

}  // namespace

Tally::Tally(Runtime& runtime, std::string key, const std::string& history) : runtime_(runtime) {
  HistoryFile(history).life({key, ActorScope::current().incarnation, ::getpid(), now_us()});
}

Result<std::uint64_t> Tally::add(const CallContext& call, std::int32_t client, std::int64_t mark) {
  auto& marks = done_[client];
  auto& twice = done_[-1];
  twice.resize(1);
  if (has_bit(marks, mark)) ++twice[0];
  set_bit(marks, mark);
  if (Status saved = runtime_.save_state(*this, call.deadline()); !saved.ok()) return saved;
  return ActorScope::current().incarnation;
}

std::int32_t Tally::pid() const { return ::getpid(); }

Result<std::int64_t> Relay::ask(const CallContext& call, const ActorHandle<Echo>& echo,
                                std::int64_t value) const {
  return runtime_.get(echo.call(CallOptions{.until = call.deadline()}, &Echo::say, value));
}

void register_load(Runtime& runtime) {
  runtime.register_actor<Tally>("Tally", &Tally::add, &Tally::marks, &Tally::pid);
  runtime.register_actor<Echo>("Echo", &Echo::say);
  runtime.register_actor<Relay>("Relay", &Relay::ask);
}

std::vector<std::string> load_command(const LoadOptions& options) {
  return {own_program(),
          "--load",
          options.history,
          std::to_string(options.client),
          std::to_string(options.tallies),
          std::to_string(options.seconds),
          std::to_string(options.per_second),
          options.kinds};
}

int run_load(int argc, char** argv) {
  ::signal(SIGTERM, [](int) { terminated = true; });
  RuntimeOptions runtime;
  runtime.start_cluster = false;
  runtime.forward_output = false;
  Runtime rt(argc, argv, runtime);
  register_load(rt);
  return rt.run([](Runtime& driver) {
    const std::vector<std::string>& words = driver.arguments();
    LoadOptions options;
    options.history = words.at(2);
    options.client = std::stoi(words.at(3));
    options.tallies = std::stoi(words.at(4));
    options.seconds = std::stod(words.at(5));
    options.per_second = std::stod(words.at(6));
    options.kinds = words.at(7);
    std::printf("begun\n");
    std::fflush(stdout);
    return Load(driver, options).run();
  });
}

int run_verify(int argc, char** argv) {
  RuntimeOptions runtime;
  runtime.start_cluster = false;
  Runtime rt(argc, argv, runtime);
  register_load(rt);
  return rt.run([](Runtime& driver) -> Status {
    const History history = History::read(driver.arguments().at(2));
    std::set<std::string> tallies, published;
    for (const Event& event : history.events) {
      if (event.op == Op::kAdd) tallies.insert(event.key);
      if (event.op == Op::kPublish) published.insert(event.key);
    }
    std::ofstream out(driver.arguments().at(3));
    for (const std::string& name : tallies) {
      auto tally = driver.get_actor<Tally>(name, kNameSpace, 60s);
      if (tally.status().code() == ErrorCode::kNotFound) continue;  // violations() judges that
      if (!tally.ok()) return tally.status();
      auto marks = driver.get(tally->call(CallOptions{.timeout = 60s}, &Tally::marks));
      if (!marks.ok()) return marks.status();
      for (const auto& [client, bits] : *marks) {
        out << "T " << name << ' ' << client;
        for (std::uint64_t word : bits) out << ' ' << word;
        out << '\n';
      }
    }
    for (const std::string& name : published) {
      PublishedQuery query;
      query.name_space = kNameSpace;
      auto latest = driver.published().latest<std::vector<std::int64_t>>(name, query, 20s);
      if (latest.status().code() == ErrorCode::kNotFound) continue;
      if (!latest.ok()) return latest.status();
      auto value = driver.get(latest->ref, 20s);
      if (!value.ok()) return value.status();
      const auto version = static_cast<std::int64_t>(latest->version);
      if (*value != std::vector<std::int64_t>(16, version))
        return Status(ErrorCode::kInternal,
                      name + ": version " + std::to_string(version) + " has another value");
      out << "P " << name << ' ' << version << '\n';
    }
    out << "end\n";
    return {};
  });
}

int run_fill(int argc, char** argv) {
  RuntimeOptions runtime;
  runtime.start_cluster = false;
  Runtime rt(argc, argv, runtime);
  register_load(rt);
  return rt.run([](Runtime& driver) {
    const int count = std::stoi(driver.arguments().at(2));
    const std::size_t words =
        std::stoul(driver.arguments().at(3)) * (1 << 20) / sizeof(std::int64_t);
    std::map<int, ObjectRef<std::vector<std::int64_t>>> held;
    int refused = 0;
    for (int i = 0; i < count; ++i) {
      const std::int64_t begin = now_us();
      auto made = driver.put(std::vector<std::int64_t>(words, i), 1s);
      if (made.ok())
        held.emplace(i, *made);
      else if (made.status().code() == ErrorCode::kResourceExhausted &&
               now_us() - begin < 5'000'000)
        ++refused;
      else
        return std::printf("object %d: %s\n", i, made.status().to_string().c_str()), 1;
    }
    for (const auto& [i, object] : held) {
      auto value = driver.get(object, 30s);
      if (!value.ok() || *value != std::vector<std::int64_t>(words, i))
        return std::printf("object %d is not what it was: %s\n", i,
                           value.status().to_string().c_str()),
               2;
    }
    std::printf("%zu objects held, %d refused\n", held.size(), refused);
    return held.empty() || refused == 0 ? 3 : 0;
  });
}

Result<Outcome> read_outcome(const std::string& file) {
  Outcome outcome;
  std::ifstream in(file);
  bool whole = false;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind >> name;
    if (kind == "end") whole = true;
    if (kind == "T") {
      std::int32_t client = 0;
      words >> client;
      auto& bits = outcome.tallies[name][client];
      for (std::uint64_t word = 0; words >> word;) bits.push_back(word);
    }
    if (kind == "P") words >> outcome.published[name];
  }
  return whole ? Result<Outcome>(std::move(outcome))
               : Result<Outcome>(
                     not_found("what is there in the end is not known: " + file + " is not whole"));
}

}  // namespace runtime::test
