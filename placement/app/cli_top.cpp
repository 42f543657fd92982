#include "placement/app/cli_top.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <thread>

#include "placement/app/cli_nodes.h"
#include "runtime/core/printable_text.h"

namespace placement {

namespace {

constexpr std::chrono::milliseconds kRatePause{
    500};  // between the two looks that rates are made of
constexpr std::size_t kActorsAsked = 2'000;
constexpr int kRowsDefault = 20;
constexpr int kReconnectEvery = 15;  // looks, when all nodes answer

volatile std::sig_atomic_t top_interrupted = 0;
void interrupt_top(int) { top_interrupted = 1; }

/// The terminal without echo and lines, on its own screen; as it was when this goes.
class Terminal {
 public:
  Terminal() {
    ::tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    std::fputs("\x1b[?1049h\x1b[?25l", stdout);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    std::fputs("\x1b[?25h\x1b[?1049l", stdout);
    std::fflush(stdout);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  /// Waits for a key: true when it is one that ends the command.
  bool wait_for_end(std::chrono::milliseconds time) const {
    pollfd keys{STDIN_FILENO, POLLIN, 0};
    if (::poll(&keys, 1, static_cast<int>(time.count())) <= 0) return top_interrupted != 0;
    char key = 0;
    return ::read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q' || key == 3;
  }
  static winsize size() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) size = {24, 80, 0, 0};
    return size;
  }

 private:
  termios before_{};
};

/// All nodes' loads at one moment.
struct Look {
  std::map<runtime::NodeId, runtime::NodeLoad> loads;
};

struct Row {
  const runtime::ActorLoad* load = nullptr;
  runtime::NodeId node;
  double calls_per_s = 0;
  double busy = 0;  // share of the time in which it ran something
};

double number(const runtime::NodeLoad& load, const char* name) {
  auto found = load.numbers.find(name);
  return found == load.numbers.end() ? 0 : found->second;
}

double as_gib(double bytes) { return bytes / (1 << 30); }

double seconds_between(const runtime::NodeLoad& before, const runtime::NodeLoad& now) {
  return now.at_ns > before.at_ns ? static_cast<double>(now.at_ns - before.at_ns) * 1e-9 : 0;
}

Look take_look(NodeSet& nodes) {
  Look look;
  nodes.ask_all<runtime::NodeLoad>(runtime::control::ReadLoad{kActorsAsked},
                                   [&](const runtime::NodeInfo& info, runtime::NodeLoad load) {
                                     look.loads[info.node] = std::move(load);
                                   });
  return look;
}

template <class... Values>
void add_line(std::string& text, const char* format, Values... values) {
  char buffer[320];
  std::snprintf(buffer, sizeof buffer, format, values...);
  text += buffer;
  text += '\n';
}

/// What has happened on a node between two looks.
struct Change {
  const runtime::NodeLoad& now;
  const runtime::NodeLoad* before;  // null: it was not there
  double seconds;                   // between them; 0: unknown

  double rate(double now_count, double before_count) const {
    return seconds > 0 && now_count >= before_count ? (now_count - before_count) / seconds : 0.0;
  }
};

std::uint64_t calls_of(const runtime::NodeLoad& load) {
  std::uint64_t calls = 0;
  for (const runtime::ClassLoad& of_class : load.classes) calls += of_class.calls;
  return calls;
}

void add_node(std::string& text, const runtime::NodeInfo& info, const Change& change) {
  const runtime::NodeLoad& load = change.now;
  const double busy = change.seconds > 0 ? (number(load, "machine_busy_seconds") -
                                            number(*change.before, "machine_busy_seconds")) /
                                               change.seconds
                                         : 0;
  std::uint64_t waiting = 0;
  for (const runtime::ClassLoad& of_class : load.classes) waiting += of_class.waiting;
  double workers = 0;
  for (const char* state :
       {"workers_idle", "workers_starting", "workers_actor", "workers_shared", "workers_ending"})
    workers += number(load, state);
  const double store =
      number(load, "store_capacity_bytes") > 0
          ? number(load, "store_leased_bytes") + number(load, "store_published_bytes") +
                number(load, "store_replica_bytes") + number(load, "store_orphaned_bytes")
          : 0;
  const double calls =
      change.rate(static_cast<double>(calls_of(load)),
                  change.before ? static_cast<double>(calls_of(*change.before)) : 0.0);
  add_line(text, "%-8s %-21s %5.1f/%-3.0f %7.2f/%-7.2f %7.2f/%-7.2f %7.0f %7.0f %9.0f %7llu",
           info.node.short_hex().c_str(), info.address.c_str(), std::max(0.0, busy),
           number(load, "cpus"), as_gib(number(load, "memory_used_bytes")),
           as_gib(number(load, "memory_limit_bytes")), as_gib(store),
           as_gib(number(load, "store_capacity_bytes")), number(load, "actors_serving"), workers,
           calls, static_cast<unsigned long long>(waiting));
}

void add_rows(std::vector<Row>& rows, runtime::NodeId node, const Change& change) {
  std::map<runtime::ActorId, const runtime::ActorLoad*> before;
  if (change.before) {
    for (const runtime::ActorLoad& actor : change.before->actors) before[actor.actor] = &actor;
  }
  for (const runtime::ActorLoad& actor : change.now.actors) {
    Row row{&actor, node, 0, 0};
    if (auto known = before.find(actor.actor);
        known != before.end() && change.seconds > 0 && actor.calls >= known->second->calls) {
      row.calls_per_s = static_cast<double>(actor.calls - known->second->calls) / change.seconds;
      row.busy =
          static_cast<double>(actor.busy_ns - std::min(actor.busy_ns, known->second->busy_ns)) *
          1e-9 / change.seconds;
    }
    if (!actor.running.empty())
      row.busy = std::max(row.busy, std::min(1.0, static_cast<double>(actor.running_ns) * 1e-9 /
                                                      std::max(change.seconds, 1e-3)));
    rows.push_back(row);
  }
}

void add_actor(std::string& text, const Row& row) {
  const runtime::ActorLoad& load = *row.load;
  char runs[160] = "";
  if (!load.running.empty())
    std::snprintf(runs, sizeof runs, "%.100s for %.1f s", load.running.c_str(),
                  static_cast<double>(load.running_ns) * 1e-9);
  add_line(text, "%-8s %-24.24s %-8s %7d %9.0f %5.0f%% %8llu %8llu  %s",
           load.actor.short_hex().c_str(), load.class_name.c_str(), row.node.short_hex().c_str(),
           load.pid, row.calls_per_s, 100 * row.busy, static_cast<unsigned long long>(load.waiting),
           static_cast<unsigned long long>(load.failed), runs);
}

/// A line per node, and a line per actor, the busiest first.
std::string render(NodeSet& nodes, const Look& before, const Look& now, int actor_rows) {
  std::string text;
  std::vector<Row> rows;
  add_line(text, "%-8s %-21s %9s %15s %15s %7s %7s %9s %7s", "NODE", "ADDRESS", "CPU", "MEMORY GiB",
           "STORE GiB", "ACTORS", "WORKERS", "CALLS/s", "IN LINE");
  for (const NodeSet::Entry& entry : nodes.nodes()) {
    const runtime::NodeId id = entry.info.node;
    auto found = now.loads.find(id);
    if (found == now.loads.end()) {
      add_line(text, "%-8s %-21s no answer: %.200s", id.short_hex().c_str(),
               entry.info.address.c_str(), entry.trouble.message().c_str());
      continue;
    }
    auto earlier = before.loads.find(id);
    const runtime::NodeLoad* then = earlier == before.loads.end() ? nullptr : &earlier->second;
    const Change change{found->second, then, then ? seconds_between(*then, found->second) : 0};
    add_node(text, entry.info, change);
    add_rows(rows, id, change);
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tuple(a.calls_per_s, a.busy, a.load->waiting, b.load->actor) >
           std::tuple(b.calls_per_s, b.busy, b.load->waiting, a.load->actor);
  });
  text += '\n';
  add_line(text, "%-8s %-24s %-8s %7s %9s %6s %8s %8s  %s", "ACTOR", "CLASS", "NODE", "PID",
           "CALLS/s", "BUSY", "IN LINE", "FAILED", "RUNS");
  for (std::size_t i = 0; i < std::min(rows.size(), static_cast<std::size_t>(actor_rows)); ++i)
    add_actor(text, rows[i]);
  return text;
}

/// Each line cut to the terminal's width, and what is left of an older one wiped.
void paint(const std::string& raw, const winsize& size) {
  const std::string text = runtime::printable_text(raw);
  std::string out = "\x1b[H";
  int row = 0;
  for (std::size_t at = 0; at < text.size() && row + 1 < size.ws_row; ++row) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += text.substr(at, std::min<std::size_t>(end - at, size.ws_col)) + "\x1b[K\n";
    at = end + 1;
  }
  out += "q ends\x1b[J";
  std::fputs(out.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

int top_command(const TopOptions& options) {
  auto nodes = NodeSet::connect(options.address);
  if (!nodes.ok()) return fail(nodes.status());
  Look before = take_look(**nodes);
  std::this_thread::sleep_for(kRatePause);
  if (options.once || ::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0) {
    const Look now = take_look(**nodes);
    const std::string text =
        render(**nodes, before, now, options.rows > 0 ? options.rows : kRowsDefault);
    std::fputs(runtime::printable_text(text).c_str(), stdout);
    return (*nodes)->report_silent() ? 1 : 0;
  }
  struct sigaction action {};
  action.sa_handler = interrupt_top;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
  Terminal terminal;
  int looks = 0;
  while (top_interrupted == 0) {
    Look now = take_look(**nodes);
    const winsize size = Terminal::size();
    const int fits = size.ws_row - static_cast<int>((*nodes)->nodes().size()) - 4;
    paint(render(**nodes, before, now, options.rows > 0 ? options.rows : std::max(1, fits)), size);
    before = std::move(now);
    if (terminal.wait_for_end(options.every)) break;
    // Nodes that have joined, or come back.
    const bool some_silent =
        std::any_of((*nodes)->nodes().begin(), (*nodes)->nodes().end(),
                    [](const NodeSet::Entry& entry) { return !entry.trouble.ok(); });
    if (!some_silent && ++looks % kReconnectEvery != 0) continue;
    if (auto fresh = NodeSet::connect(options.address); fresh.ok()) *nodes = *std::move(fresh);
  }
  return 0;
}

}  // namespace placement
