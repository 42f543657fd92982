#include "history.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <tuple>

namespace runtime::test {
namespace {

constexpr std::size_t kViolationsMax = 20;  // of a kind; the first ones say enough

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

class Checker {
 public:
  Checker(const History& history, const Outcome& outcome, const Rules& rules)
      : history_(history), outcome_(outcome), rules_(rules) {}

  std::vector<std::string> run() {
    answers_come_in_time();
    acknowledged_marks_are_there();
    incarnations_only_grow();
    incarnations_begin_once();
    pairs_are_there();
    sums_only_grow();
    versions_are_there();
    names_have_one_bearer();
    answers_are_right();
    return std::move(found_);
  }

 private:
  void add(const std::string& what) {
    if (found_.size() < kViolationsMax) found_.push_back(what);
  }

  void answers_come_in_time() {
    for (const Event& event : history_.events) {
      if (event.end == 0) continue;  // its client was killed, or ended
      const std::int64_t late = event.end - event.begin - event.patience - event.stalled;
      if (late > rules_.grace_us)
        add("answered " + std::to_string(late / 1000) +
            " ms past its deadline: " + event.to_string());
    }
  }

  /// kInternal is also how a client says that what it was answered cannot be: another call's
  /// answer, a gang on two places.
  void answers_are_right() {
    for (const Event& event : history_.events) {
      if (event.code == ErrorCode::kInternal && event.op != Op::kGet)
        add("a wrong answer: " + event.to_string());
    }
  }

  void acknowledged_marks_are_there() {
    std::map<std::pair<std::string, std::int32_t>, std::vector<std::uint64_t>> asked;
    for (const Event& event : history_.events) {
      if (event.op != Op::kAdd) continue;
      set_bit(asked[{event.key, event.client}], event.value);
      if (!event.ok()) continue;
      auto tally = outcome_.tallies.find(event.key);
      if (tally == outcome_.tallies.end()) {
        add("actor " + event.key + " is gone, with what it had acknowledged: " + event.to_string());
        continue;
      }
      auto bits = tally->second.find(event.client);
      if (bits == tally->second.end() || !has_bit(bits->second, event.value))
        add("an acknowledged mark is lost: " + event.to_string());
    }
    for (const auto& [name, clients] : outcome_.tallies) {
      for (const auto& [client, bits] : clients) {
        if (client < 0) {
          if (!bits.empty() && bits[0] != 0)
            add(name + ": " + std::to_string(bits[0]) +
                " marks were made twice, though no call is to be retried");
          continue;
        }
        const auto& wanted = asked[{name, client}];
        for (std::int64_t at = 0; at < static_cast<std::int64_t>(64 * bits.size()); ++at) {
          if (has_bit(bits, at) && !has_bit(wanted, at))
            add(name + ": mark " + std::to_string(at) + " of client " + std::to_string(client) +
                " was never asked for");
        }
      }
    }
  }

  // A mark is saved at the head, which takes nothing from an incarnation that it has replaced. Once
  // an incarnation has answered a call, later calls are answered by it or its successors.
  void incarnations_only_grow() {
    std::map<std::string, std::vector<const Event*>> answers;  // in the order of their ends
    std::map<std::pair<std::string, std::int32_t>, std::uint64_t> seen;
    for (const Event& event : history_.events) {
      if (!event.ok() || event.op != Op::kAdd) continue;
      auto& newest = seen[{event.key, event.client}];
      if (event.incarnation < newest)
        add("a client that had seen incarnation " + std::to_string(newest) +
            " was answered by an older one: " + event.to_string());
      newest = std::max(newest, event.incarnation);
      answers[event.key].push_back(&event);
    }
    for (auto& [name, events] : answers) {
      std::vector<const Event*> by_begin = events;
      std::stable_sort(by_begin.begin(), by_begin.end(),
                       [](const Event* a, const Event* b) { return a->begin < b->begin; });
      const Event* newest = nullptr;
      auto ended = events.begin();
      for (const Event* event : by_begin) {
        for (; ended != events.end() && (*ended)->end < event->begin; ++ended) {
          if (!newest || (*ended)->incarnation > newest->incarnation) newest = *ended;
        }
        if (newest && event->incarnation < newest->incarnation) {
          add("two incarnations of " + name + " at once: " + event->to_string() +
              "\n    although before it began: " + newest->to_string());
        }
      }
    }
  }

  void incarnations_begin_once() {
    std::map<std::pair<std::string, std::uint64_t>, std::int32_t> begun;
    for (const Life& life : history_.lives) {
      auto [at, is_new] = begun.emplace(std::pair(life.key, life.incarnation), life.pid);
      if (!is_new) {
        add("incarnation " + std::to_string(life.incarnation) + " of " + life.key +
            " began twice: as process " + std::to_string(at->second) + " and as " +
            std::to_string(life.pid));
      }
    }
  }

  // Each client writes its keys one after another, and each once.
  void pairs_are_there() {
    std::map<std::tuple<std::int32_t, std::string, std::int64_t>, const Event*> written;
    for (const Event& event : history_.events) {
      if (event.op == Op::kPut && event.ok())
        written[{event.client, event.key, event.value}] = &event;
    }
    for (const Event& event : history_.events) {
      if (event.op != Op::kGet || event.end == 0) continue;
      const bool was_written = written.contains({event.client, event.key, event.value});
      if (was_written && event.code == ErrorCode::kNotFound)
        add("an acknowledged pair is lost: " + event.to_string());
      if (event.code == ErrorCode::kInternal)
        add("a pair has another value than the one that was acknowledged: " + event.to_string());
    }
  }

  void sums_only_grow() {
    struct Sum {
      std::int64_t last = 0, asked = 0;
    };
    std::map<std::int32_t, Sum>
        sums;  // each client has its own number, and asks again only after an answer
    for (const Event& event : history_.events) {
      if (event.op != Op::kSum || event.end == 0) continue;
      Sum& sum = sums[event.client];
      ++sum.asked;
      if (!event.ok()) continue;
      if (event.value <= sum.last)
        add("an acknowledged addition is lost (the sum was " + std::to_string(sum.last) +
            " before): " + event.to_string());
      if (event.value > sum.asked)
        add("something was added more often than it was asked for (" + std::to_string(sum.asked) +
            "): " + event.to_string());
      sum.last = event.value;
    }
  }

  void versions_are_there() {
    std::map<std::string, const Event*> acknowledged;
    std::map<std::string, std::int64_t> asked;
    for (const Event& event : history_.events) {
      if (event.op != Op::kPublish) continue;
      asked[event.key] = std::max(asked[event.key], event.value);
      if (!event.ok()) continue;
      const Event*& newest = acknowledged[event.key];
      if (!newest || event.value > newest->value) newest = &event;
    }
    for (const auto& [name, event] : acknowledged) {
      auto latest = outcome_.published.find(name);
      if (latest == outcome_.published.end() || latest->second < event->value) {
        add("a published version is lost (the latest is " +
            (latest == outcome_.published.end() ? "none" : std::to_string(latest->second)) +
            "): " + event->to_string());
      } else if (latest->second > asked[name]) {
        add(name + ": version " + std::to_string(latest->second) + " was never published");
      }
    }
  }

  void names_have_one_bearer() {
    std::map<std::string, const Event*> bearers;
    for (const Event& event : history_.events) {
      if (event.op != Op::kName || !event.ok()) continue;
      auto [at, is_new] = bearers.emplace(event.key, &event);
      const std::int64_t from = at->second->end - rules_.unsettled_us;
      const bool may_have_died =
          !is_new && std::any_of(history_.unsettled.begin(), history_.unsettled.end(),
                                 [&event, from](std::int64_t when) {
                                   return when > from && when < event.end;
                                 });
      if (!is_new && !may_have_died)
        add("a name was given twice: " + event.to_string() +
            "\n    and: " + at->second->to_string());
    }
  }

  const History& history_;
  const Outcome& outcome_;
  const Rules& rules_;
  std::vector<std::string> found_;
};

}  // namespace

std::int64_t now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
}

std::string Event::to_string() const {
  std::ostringstream out;
  out << "client " << client << ' ' << static_cast<char>(op) << ' ' << key << ' ' << value
      << " from " << begin / 1000 << " ms ";
  if (end == 0) {
    out << "without an answer";
  } else {
    out << "to " << end / 1000 << " ms: " << (ok() ? "ok" : text);
    if (incarnation != 0) out << " (incarnation " << incarnation << ")";
  }
  return out.str();
}

HistoryFile::HistoryFile(const std::filesystem::path& file)
    : file_(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {}

void HistoryFile::write(char kind, const Event& event) {
  std::ostringstream out;
  out << kind << ' ' << event.client << ' ' << static_cast<char>(event.op) << ' ' << event.key
      << ' ' << event.value << ' ' << event.begin << ' ' << event.end << ' ' << event.patience
      << ' ' << event.stalled << ' ' << static_cast<int>(event.code) << ' ' << event.incarnation
      << ' ' << one_line(event.text) << '\n';
  const std::string line = out.str();
  if (::write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    ::abort();
}

void HistoryFile::life(const Life& life) {
  std::ostringstream out;
  out << "L " << life.key << ' ' << life.incarnation << ' ' << life.pid << ' ' << life.begin
      << '\n';
  const std::string line = out.str();
  if (::write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    ::abort();
}

void HistoryFile::unsettled(std::int64_t when) {
  const std::string line = "D " + std::to_string(when) + "\n";
  if (::write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    ::abort();
}

History History::read(const std::filesystem::path& file) {
  History history;
  std::map<std::tuple<std::int32_t, char, std::string, std::int64_t, std::int64_t>, Event> open;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    char kind = 0;
    words >> kind;
    if (kind == 'D') {
      words >> history.unsettled.emplace_back();
      continue;
    }
    if (kind == 'L') {
      Life life;
      words >> life.key >> life.incarnation >> life.pid >> life.begin;
      history.lives.push_back(life);
      continue;
    }
    Event event;
    char op = 0;
    int code = 0;
    words >> event.client >> op >> event.key >> event.value >> event.begin >> event.end >>
        event.patience >> event.stalled >> code >> event.incarnation;
    std::getline(words >> std::ws, event.text);
    event.op = static_cast<Op>(op);
    event.code = static_cast<ErrorCode>(code);
    // The number that an addition comes to is known at its end only.
    const auto key = std::tuple(event.client, op, event.key, event.op == Op::kSum ? 0 : event.value,
                                event.begin);
    if (kind == 'B') {
      open[key] = std::move(event);
    } else {
      open.erase(key);
      history.events.push_back(std::move(event));
    }
  }
  std::stable_sort(history.events.begin(), history.events.end(),
                   [](const Event& a, const Event& b) { return a.end < b.end; });
  for (auto& [key, event] : open) history.events.push_back(std::move(event));
  return history;
}

std::string History::excerpt(std::int64_t around, std::size_t lines) const {
  const auto middle =
      std::find_if(events.begin(), events.end(),
                   [&](const Event& event) { return event.end == 0 || event.end >= around; }) -
      events.begin();
  const std::ptrdiff_t half = static_cast<std::ptrdiff_t>(lines / 2),
                       count = static_cast<std::ptrdiff_t>(events.size());
  std::string text;
  for (std::ptrdiff_t i = std::max<std::ptrdiff_t>(0, middle - half);
       i < std::min(count, middle + half); ++i)
    text += events[static_cast<std::size_t>(i)].to_string() + "\n";
  return text;
}

std::vector<std::string> violations(const History& history, const Outcome& outcome,
                                    const Rules& rules) {
  return Checker(history, outcome, rules).run();
}

}  // namespace runtime::test
