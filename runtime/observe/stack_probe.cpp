#include "runtime/observe/stack_probe.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "runtime/core/lifetime.h"
#include "runtime/core/readable_name.h"
#include "runtime/core/thread.h"
#include "runtime/core/timer.h"
#include "runtime/observe/activity_page.h"
#include "runtime/observe/stack_handler.h"
#include "runtime/observe/symbol_table.h"
#include "runtime/process/file_util.h"
#include "runtime/process/process_info.h"

namespace runtime {

namespace {

constexpr std::chrono::milliseconds kProbePeriod{5};
constexpr std::chrono::milliseconds kProbePatience{500};
constexpr std::size_t kMapsBytesMax = 8 << 20;

/// A mapped part of a file.
struct Mapped {
  std::uint64_t begin = 0, end = 0, offset = 0;
  std::string path;
};

std::vector<Mapped> mappings(pid_t pid) {
  std::vector<Mapped> found;
  const std::string text =
      read_file("/proc/" + std::to_string(pid) + "/maps", kMapsBytesMax).value_or("");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    Mapped mapped;
    char permissions[8] = {};
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %7s %lx %*s %*s %n", &mapped.begin, &mapped.end,
                    permissions, &mapped.offset, &path_at) < 4 ||
        permissions[2] != 'x')
      continue;
    if (path_at > 0 && static_cast<std::size_t>(path_at) < line.size())
      mapped.path = line.substr(static_cast<std::size_t>(path_at));
    found.push_back(std::move(mapped));
  }
  return found;
}

std::string offset_text(std::uint64_t offset) {
  char text[32];
  std::snprintf(text, sizeof text, " +0x%lx", static_cast<unsigned long>(offset));
  return text;
}

/// The file as this process can open it: that of a program may have been replaced since, but the
/// kernel still has it.
std::string openable(pid_t pid, const std::string& path) {
  char exe[4096];
  const std::string link = "/proc/" + std::to_string(pid) + "/exe";
  const ssize_t length = ::readlink(link.c_str(), exe, sizeof exe);
  return length > 0 && path == std::string(exe, static_cast<std::size_t>(length)) ? link : path;
}

/// An address that is to be named, and where it stands in the result.
struct Wanted {
  std::uint64_t file_offset = 0;
  std::size_t place = 0;
};

void name_in_file(pid_t pid, const std::string& path, const std::vector<Wanted>& wanted,
                  std::vector<std::string>& names) {
  const std::string file = path.substr(path.rfind('/') + 1);
  const SymbolTable table(openable(pid, path).c_str());
  struct Found {
    std::uintptr_t address = 0, offset = 0;
    std::string name{};
  };
  std::vector<Found> found(wanted.size());
  std::vector<std::pair<std::uintptr_t, std::size_t>> sorted;  // addresses, and which they are of
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (auto address = table.address_of(wanted[i].file_offset)) sorted.emplace_back(*address, i);
  }
  std::sort(sorted.begin(), sorted.end());
  table.for_each_function(
      [&](std::uintptr_t start, std::size_t size, SymbolTable::NamePlace place) {
        auto at = std::lower_bound(sorted.begin(), sorted.end(),
                                   std::pair<std::uintptr_t, std::size_t>(start, 0));
        for (; at != sorted.end() && at->first < start + std::max<std::size_t>(size, 1); ++at) {
          Found& entry = found[at->second];
          std::string name = table.name(place);
          if (!entry.name.empty() && entry.name <= name) continue;
          entry = {at->first, at->first - start, std::move(name)};
        }
      });
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    names[wanted[i].place] =
        (!found[i].name.empty() ? readable_name(found[i].name) + offset_text(found[i].offset)
                                : "?" + offset_text(wanted[i].file_offset)) +
        " (" + file + ")";
  }
}

}  // namespace

std::vector<std::vector<std::string>> name_frames(
    pid_t pid, const std::vector<std::vector<std::uint64_t>>& stacks) {
  std::vector<std::string> names;
  const std::vector<Mapped> mapped = mappings(pid);
  std::map<std::string, std::vector<Wanted>> by_file;
  for (const auto& stack : stacks) {
    for (std::size_t i = 0; i < stack.size(); ++i) {
      // A return address may be the start of the next function; the call is before it.
      const std::uint64_t address = i == 0 ? stack[i] : stack[i] - 1;
      auto module = std::find_if(mapped.begin(), mapped.end(), [&](const Mapped& m) {
        return address >= m.begin && address < m.end;
      });
      const bool is_file = module != mapped.end() && module->path.starts_with('/');
      if (is_file)
        by_file[module->path].push_back({address - module->begin + module->offset, names.size()});
      names.push_back(is_file ? ""
                              : "?" + offset_text(address) +
                                    (module == mapped.end() || module->path.empty()
                                         ? ""
                                         : " (" + module->path + ")"));
    }
  }
  for (const auto& [path, wanted] : by_file) name_in_file(pid, path, wanted, names);
  std::vector<std::vector<std::string>> by_stack;
  std::size_t at = 0;
  for (const auto& stack : stacks) {
    by_stack.emplace_back(names.begin() + static_cast<std::ptrdiff_t>(at),
                          names.begin() + static_cast<std::ptrdiff_t>(at + stack.size()));
    at += stack.size();
  }
  return by_stack;
}

/// One question, from the signals to the answer.
struct StackProbes::Probe {
  Probe(EventLoop& its_loop, ActivityTable& its_table, std::uint64_t number, pid_t process)
      : loop(its_loop), table(its_table), request(number), pid(process), timer(loop.context()) {}

  EventLoop& loop;
  ActivityTable& table;
  const std::uint64_t request;
  const pid_t pid;
  std::function<void(StackReport)> done;  // on the loop, unless the probe has ended
  std::function<void()> has_stacks;       // the slots of the process are free for the next question
  bool waits_for_stacks = true;
  Timer timer;
  Deadline until = Deadline::max();
  StackReport report;
  std::vector<std::vector<std::uint64_t>> addresses;  // by thread
  Thread naming;

  void begin() {
    report.pid = pid;
    report.process = process_info(pid).state;
    std::map<std::int32_t, ActivitySnapshot::Running> running;
    for (auto& run : table.running(pid)) running[run.tid] = run;
    const std::uint64_t now = activity_now();
    for (pid_t tid : threads_of(pid)) {
      if (report.threads.size() == activity::kStacksMax) {
        report.note =
            "only the first " + std::to_string(activity::kStacksMax) + " threads are shown";
        break;
      }
      ThreadStack thread;
      const ProcessInfo info = thread_info(pid, tid);
      thread.tid = tid;
      thread.name = info.name;
      thread.state = info.state;
      thread.waits_in = wait_channel(pid, tid);
      if (auto run = running.find(tid); run != running.end()) {
        thread.actor = run->second.actor;
        thread.running = run->second.method;
        thread.running_ns = now > run->second.begun_ns ? now - run->second.begun_ns : 0;
      }
      report.threads.push_back(std::move(thread));
    }
    addresses.resize(report.threads.size());
    if (!send_signals()) return finish();
    until = deadline_after(kProbePatience);
    look();
  }

  bool send_signals() {
    if (report.process == "stopped" || report.process == "traced") {
      report.note = "the process is " + report.process +
                    (report.process == "traced" ? ": a debugger holds it"
                                                : ": it was sent SIGSTOP; `kill -CONT " +
                                                      std::to_string(pid) + "` lets it go on") +
                    ". What its threads were running is shown, without their stacks";
      return false;
    }
    const ActivityView* view = table.of(pid);
    const int signal = view ? view->stack_signal() : 0;
    if (signal < SIGRTMIN || signal > SIGRTMAX) {  // another would end the process
      report.note =
          "the process has installed no handler for stacks (its program uses that signal, or is "
          "only starting); what its threads wait in is shown instead";
      return false;
    }
    for (std::size_t i = 0; i < report.threads.size(); ++i) {
      siginfo_t info{};
      info.si_code = SI_QUEUE;
      info.si_pid = ::getpid();
      info.si_uid = ::getuid();
      info.si_value.sival_ptr = reinterpret_cast<void*>(stack_order(request, i));
      (void)::syscall(SYS_rt_tgsigqueueinfo, pid, report.threads[i].tid, signal,
                      &info);  // one that has ended meanwhile does not answer
    }
    return true;
  }

  bool has_ended(ThreadStack& thread) const {
    const std::string state = thread_info(pid, thread.tid).state;
    if (state.empty()) thread.state = "ended";
    return state.empty() || state == "ended";
  }

  void look() {
    const ActivityView* view = table.of(pid);
    std::size_t missing = 0;
    for (std::size_t i = 0; view && i < addresses.size(); ++i) {
      if (addresses[i].empty())
        addresses[i] = view->stack(i, request, static_cast<std::uint32_t>(report.threads[i].tid));
      if (addresses[i].empty() && !has_ended(report.threads[i])) ++missing;
    }
    if (!view || missing == 0 || steady_now() >= until) {
      if (missing > 0) {
        report.note = std::to_string(missing) + (missing == 1 ? " thread has" : " threads have") +
                      " not answered within half a second: blocked in the kernel, or with all "
                      "signals blocked";
      }
      return finish();
    }
    timer.expires_after(kProbePeriod);
    timer.async_wait(lifetime.guard([this](boost::system::error_code ec) {
      if (!ec) look();
    }));
  }

  // Reading symbol tables takes milliseconds, or, of a program with LibTorch, hundreds of them.
  void finish() {
    waits_for_stacks = false;
    has_stacks();
    auto thread = Thread::start([this] {
      auto names = name_frames(pid, addresses);
      for (std::size_t i = 0; i < names.size(); ++i) report.threads[i].frames = std::move(names[i]);
      post_report();
    });
    if (thread.ok()) {
      naming = *std::move(thread);
      return;
    }
    report.note = "the stacks have no names: " + thread.status().message();
    post_report();
  }

  void post_report() {
    loop.post(lifetime.guard([this] {
      if (naming.joinable()) naming.join();
      const auto ended = std::move(done);  // which ends the probe, too
      ended(std::move(report));
    }));
  }

  Lifetime lifetime;  // last
};

StackProbes::~StackProbes() {
  for (auto& [request, probe] : probes_) {
    probe->lifetime.end();
    if (probe->naming.joinable()) probe->naming.join();
  }
}

void StackProbes::take(pid_t pid, std::function<void(Result<StackReport>)> done) {
  if (probes_.size() >= kProbesMax)
    return done(resource_exhausted(std::to_string(probes_.size()) +
                                   " stacks are being taken on this node already; try again"));
  if (process_info(pid).state.empty())
    return done(not_found("process " + std::to_string(pid) + " has ended"));
  // The threads of a process write into the same slots whatever the question: one at a time.
  const auto asks_this_one = [this, pid] {
    return std::ranges::find_if(probes_, [pid](const auto& entry) {
      return entry.second->pid == pid && entry.second->waits_for_stacks;
    });
  };
  const bool is_first = asks_this_one() == probes_.end();
  const std::uint64_t request = ++requests_;
  auto probe = std::make_shared<Probe>(loop_, table_, request, pid);
  probe->done = [this, request, done = std::move(done)](StackReport report) {
    const auto ended = probes_.extract(request);  // until this returns
    done(std::move(report));
  };
  probe->has_stacks = [this, asks_this_one] {
    if (const auto next = asks_this_one(); next != probes_.end()) next->second->begin();
  };
  probes_[request] = probe;
  if (is_first) probe->begin();
}

}  // namespace runtime
