#include "runtime/worker/crash_handler.h"

#include <cxxabi.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/observe/symbol.h"

namespace runtime {

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kFramesMax = 48;  // with the line before them they fit into what the node quotes
constexpr std::size_t kStackBytes = 256 << 10;

char who[64];
volatile sig_atomic_t crashed_with = 0;
void* frames[kFramesMax];
int frame_count = 0;
volatile sig_atomic_t frames_written = 0;

// ThreadSanitizer reports the allocation in the demangler, which is guarded here by a timer.
#ifdef __SANITIZE_THREAD__
constexpr bool kDemangle = false;
#else
constexpr bool kDemangle = true;
#endif

/// A line on stderr, built without allocation.
class Line {
 public:
  Line& text(const char* text) {
    while (*text != '\0' && size_ < sizeof buffer_ - 1) buffer_[size_++] = *text++;
    return *this;
  }
  Line& number(std::uintptr_t value, unsigned base) {
    char digits[32];
    int count = 0;
    do digits[count++] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    while (count > 0 && size_ < sizeof buffer_ - 1) buffer_[size_++] = digits[--count];
    return *this;
  }
  void write() {
    buffer_[size_++] = '\n';
    ssize_t ignored = ::write(STDERR_FILENO, buffer_, size_);
    (void)ignored;
  }

 private:
  char buffer_[1024];
  std::size_t size_ = 0;
};

const char* signal_name(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGABRT: return "SIGABRT";
    default: return "a signal";
  }
}

void write_frame(int i, bool demangle) {
  auto address = reinterpret_cast<std::uintptr_t>(frames[i]);
  // A return address may be the start of the next function; the call is before it.
  const Symbol symbol = symbol_at(i == 0 ? address : address - 1);
  Line line;
  line.text("  #").number(static_cast<std::uintptr_t>(i), 10).text(" ");
  char* readable = nullptr;
  if (symbol.name[0] != '\0') {
    int status = 0;
    if (demangle) readable = abi::__cxa_demangle(symbol.name, nullptr, nullptr, &status);
    line.text(readable ? readable : symbol.name).text(" +0x").number(symbol.offset, 16);
  } else {
    line.text("0x").number(address, 16);
  }
  if (symbol.module) {
    char program[512];
    const char* path = symbol.module;
    if (std::strcmp(path, "/proc/self/exe") == 0) {
      ssize_t length = ::readlink(path, program, sizeof program - 1);
      program[std::max<ssize_t>(length, 0)] = '\0';
      path = program;
    }
    const char* file = std::strrchr(path, '/');
    line.text(" (").text(file ? file + 1 : path);
    if (symbol.name[0] == '\0') line.text(" +0x").number(symbol.offset, 16);
    line.text(")");
  }
  line.write();
  // `readable` is not freed: the heap may be what is broken.
}

[[noreturn]] void end(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
  _exit(128 + signal);
}

/// Demangling allocates, which hangs if the crash came from inside of the allocator: go on without
/// it.
void on_hang(int) {
  for (int i = frames_written; i < frame_count; ++i) write_frame(i, false);
  end(crashed_with);
}

void on_crash(int signal, siginfo_t* info, void*) {
  if (crashed_with != 0) {  // a second thread, or a crash in here
    if (crashed_with == signal) ::pause();
    end(signal);
  }
  crashed_with = signal;
  Line line;
  line.text(who).text(": ").text(signal_name(signal));
  if (signal == SIGSEGV || signal == SIGBUS)
    line.text(" at address 0x").number(reinterpret_cast<std::uintptr_t>(info->si_addr), 16);
  line.text(", backtrace:").write();
  ::signal(SIGALRM, on_hang);
  itimerval limit{};
  limit.it_value.tv_usec = 300'000;
  ::setitimer(ITIMER_REAL, &limit, nullptr);
  int count = ::backtrace(frames, kFramesMax);
  // The first two are this handler and the kernel's frame.
  int skip = std::min(count, 2);
  std::memmove(frames, frames + skip, static_cast<std::size_t>(count - skip) * sizeof(void*));
  frame_count = count - skip;
  for (int i = 0; i < frame_count; ++i) {
    write_frame(i, kDemangle);
    frames_written = i + 1;
  }
  end(signal);
}

}  // namespace

void install_crash_handler(const std::string& name) {
  std::strncpy(who, name.c_str(), sizeof who - 1);
  // The first call loads the unwinder, which a handler must not do.
  void* warm_up[2];
  ::backtrace(warm_up, 2);
  static std::vector<char> stack(kStackBytes);
  stack_t alternate{};
  alternate.ss_sp = stack.data();
  alternate.ss_size = stack.size();
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int signal : kSignals) ::sigaction(signal, &action, nullptr);
}

}  // namespace runtime
