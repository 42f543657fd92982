#include "rl/profile/recorder.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rl::profile {
namespace detail {
std::atomic<std::uint32_t> session{0};
}

namespace {

struct RawSpan {
  std::int64_t begin_ns;
  std::int64_t end_ns;
  std::uint32_t name;
  SpanKind kind;
};

// What one thread records; its lock is taken by another thread only when the recording ends.
struct ThreadSpans {
  std::mutex mutex;
  std::uint32_t session = 0;
  RecordedThread thread;
  std::vector<std::string> names;
  std::unordered_map<std::string, std::uint32_t> name_ids;
  std::vector<RawSpan> spans;
};

struct Recorder {
  std::mutex mutex;
  std::uint32_t sessions = 0;
  std::vector<std::shared_ptr<ThreadSpans>> threads;
  std::atomic<std::int64_t> kernels_left{0};
  std::atomic<std::int64_t> others_left{0};
  std::atomic<std::uint64_t> cut{0};
};

Recorder& recorder() {
  static Recorder* const only = new Recorder;  // threads may end after main's objects
  return *only;
}

ThreadSpans& of_this_thread() {
  thread_local const std::shared_ptr<ThreadSpans> mine = [] {
    auto spans = std::make_shared<ThreadSpans>();
    std::array<char, 32> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    spans->thread = {static_cast<std::int64_t>(::syscall(SYS_gettid)), name.data()};
    const std::lock_guard lock(recorder().mutex);
    recorder().threads.push_back(spans);
    return spans;
  }();
  return *mine;
}

// `session`: the one that the span began in.
void keep(std::uint32_t session, std::string_view name, SpanKind kind, std::int64_t begin_ns,
          std::int64_t end_ns) {
  ThreadSpans& mine = of_this_thread();
  Recorder& all = recorder();
  const std::lock_guard lock(mine.mutex);
  if (detail::session.load(std::memory_order_acquire) != session) return;
  if ((kind == SpanKind::kKernel ? all.kernels_left : all.others_left)
          .fetch_sub(1, std::memory_order_relaxed) <= 0) {
    all.cut.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (mine.session != session) {
    mine.session = session;
    mine.spans.clear();
    mine.names.clear();
    mine.name_ids.clear();
  }
  const auto [place, is_new] =
      mine.name_ids.try_emplace(std::string(name), static_cast<std::uint32_t>(mine.names.size()));
  if (is_new) mine.names.push_back(place->first);
  mine.spans.push_back({begin_ns, end_ns, place->second, kind});
}

}  // namespace

bool Recording::consistent() const {
  const std::size_t count = name.size();
  if (thread.size() != count || kind.size() != count || begin_ns.size() != count ||
      end_ns.size() != count)
    return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (name[i] >= names.size() || thread[i] >= threads.size() || kind[i] > SpanKind::kKernel ||
        end_ns[i] < begin_ns[i])
      return false;
  }
  return true;
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string machine_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string name;
  file >> name;
  return name;
}

ProfileStarted start(std::int64_t spans_max) {
  Recorder& all = recorder();
  const std::lock_guard lock(all.mutex);
  // Ended threads are known to this list alone.
  std::erase_if(all.threads,
                [](const std::shared_ptr<ThreadSpans>& thread) { return thread.use_count() == 1; });
  all.kernels_left = spans_max - spans_max / 4;
  all.others_left = spans_max / 4;
  all.cut = 0;
  detail::session.store(++all.sessions, std::memory_order_release);
  return {machine_name(), now_ns()};
}

ProfileStarted start(const ProfileRequest& request) {
  return request.wanted ? start(request.spans_max) : ProfileStarted{machine_name(), now_ns()};
}

Recording stop() {
  Recorder& all = recorder();
  const std::lock_guard lock(all.mutex);
  const std::uint32_t session = detail::session.exchange(0);
  Recording recording;
  if (session == 0) return recording;
  std::unordered_map<std::string, std::uint32_t> name_ids;
  for (const std::shared_ptr<ThreadSpans>& thread : all.threads) {
    const std::lock_guard thread_lock(thread->mutex);
    if (thread->session != session || thread->spans.empty()) continue;
    std::vector<std::uint32_t> ids;
    for (const std::string& name : thread->names) {
      const auto [place, is_new] =
          name_ids.try_emplace(name, static_cast<std::uint32_t>(recording.names.size()));
      if (is_new) recording.names.push_back(name);
      ids.push_back(place->second);
    }
    const auto index = static_cast<std::uint32_t>(recording.threads.size());
    recording.threads.push_back(thread->thread);
    for (const RawSpan& span : thread->spans) {
      recording.name.push_back(ids[span.name]);
      recording.thread.push_back(index);
      recording.kind.push_back(span.kind);
      recording.begin_ns.push_back(span.begin_ns);
      recording.end_ns.push_back(span.end_ns);
    }
    thread->spans = {};
  }
  recording.cut = all.cut.load();
  return recording;
}

void add(std::string_view name, SpanKind kind, std::int64_t begin_ns, std::int64_t end_ns) {
  const std::uint32_t session = detail::session.load(std::memory_order_relaxed);
  if (session != 0) keep(session, name, kind, begin_ns, end_ns);
}

void Span::end() const { keep(session_, name_, kind_, begin_ns_, now_ns()); }

}  // namespace rl::profile
