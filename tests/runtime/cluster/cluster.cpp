#include "cluster.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/eventually.h"

namespace runtime::test {

namespace fs = std::filesystem;

namespace {

std::string file_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// From now on, programs that this process starts have clocks that are ahead. In the child of a
/// fork.
bool enter_time_name_space(std::chrono::seconds ahead) {
  if (::unshare(CLONE_NEWTIME) != 0) return false;
  const std::string offsets = "monotonic " + std::to_string(ahead.count()) + " 0\nboottime " +
                              std::to_string(ahead.count()) + " 0\n";
  FileDescriptor file(::open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), offsets.data(), offsets.size()) ==
                     static_cast<ssize_t>(offsets.size());
}

}  // namespace

Program::Program(const Machine& machine, const Spec& spec) : output_(spec.output) {
  std::vector<std::string> words = spec.argv;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  FileDescriptor out(::open(output_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent ||
      (!machine.is_here() && ::setns(machine.name_space(), CLONE_NEWNET) != 0))
    ::_exit(126);
  if (spec.clock_ahead.count() != 0 && !enter_time_name_space(spec.clock_ahead)) ::_exit(125);
  for (const std::string& variable : spec.environment) {
    const std::size_t equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
  FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(out.get(), STDOUT_FILENO);
  ::dup2(out.get(), STDERR_FILENO);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

Program::~Program() {
  if (!runs()) return;
  signal(SIGKILL);
  wait(std::chrono::hours(1));
}

bool Program::runs() { return !wait(0ms).has_value(); }

std::optional<int> Program::wait(std::chrono::milliseconds patience) {
  const auto has_ended = [&] {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
  };
  if (!code_) (void)support::eventually(has_ended, patience, 2ms);
  return code_;
}

std::string Program::output() const { return file_text(output_); }

Cluster::Cluster(Network& network, fs::path folder, ClusterOptions options)
    : network_(network),
      folder_(std::move(folder)),
      options_(std::move(options)),
      nodes_(static_cast<std::size_t>(options_.machines)) {}

Cluster::~Cluster() { nodes_.clear(); }

std::string Cluster::address(int machine) const {
  const Machine& at = network_.machine(machine);
  return (options_.ipv6 ? "[" + at.ipv6() + "]" : at.ipv4()) + ":" + std::to_string(options_.port);
}

std::vector<std::string> Cluster::environment(int machine) const {
  std::vector<std::string> variables = {
      "STARLING_SESSION_ROOT=" + (folder_ / ("s" + std::to_string(machine))).string(),
      "STARLING_CACHE=" + (folder_ / "cache").string(), "STARLING_PROGRAM=" + starling_program()};
  if (machine != 0) variables.push_back("STARLING_TOKEN_FILE=" + token_file().string());
  if (options_.environment) {
    for (std::string& more : options_.environment(machine)) variables.push_back(std::move(more));
  }
  return variables;
}

Status Cluster::start() {
  for (int machine = 0; machine < options_.machines; ++machine) {
    if (Status status = start_node(machine); !status.ok()) return status;
  }
  return {};
}

Status Cluster::start_node(int machine) {
  const Machine& at = network_.machine(machine);
  const std::string host = options_.ipv6 ? at.ipv6() : at.ipv4();
  std::vector<std::string> argv = {starling_program(),
                                   "start",
                                   "--block",
                                   "--bind",
                                   options_.everywhere ? "::" : host,
                                   "--port",
                                   std::to_string(options_.port)};
  const auto append = [&argv](const std::vector<std::string>& more) {
    argv.insert(argv.end(), more.begin(), more.end());
  };
  if (options_.everywhere) append({"--advertise", host});
  append(options_.arguments);
  if (machine == 0) {
    append({"--head"});
    append(options_.head_arguments);
    if (options_.durable) append({"--journal", journal().string()});
  } else {
    append({"--address", address(0)});
  }
  Program::Spec spec;
  spec.argv = std::move(argv);
  spec.environment = environment(machine);
  spec.output = folder_ / ("node" + std::to_string(machine) + "." + std::to_string(launched_++));
  if (options_.clock_ahead) spec.clock_ahead = options_.clock_ahead(machine);
  auto& node = nodes_[static_cast<std::size_t>(machine)];
  node = nullptr;
  node = std::make_unique<Program>(at, spec);
  const auto announced = [&] {
    // A separate line; what the node logs may follow it.
    return ("\n" + node->output()).find("\n" + address(machine) + "\n") != std::string::npos;
  };
  if (!eventually([&] { return announced() || !node->runs(); }, 40s, 5ms) || !announced()) {
    return unavailable("the node of machine " + std::to_string(machine) +
                       " did not start: " + node->output());
  }
  if (machine != 0 || fs::exists(token_file())) return {};
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "s0")) {
    if (entry.path().filename() == "token") fs::copy_file(entry.path(), token_file());
  }
  return fs::exists(token_file()) ? Status() : not_found("the head has made no token");
}

bool Cluster::runs(int machine) {
  auto& node = nodes_[static_cast<std::size_t>(machine)];
  return node && node->runs();
}

pid_t Cluster::node(int machine) const {
  const auto& node = nodes_[static_cast<std::size_t>(machine)];
  return node && node->runs() ? node->pid() : 0;
}

pid_t Cluster::head() const {
  for (pid_t child : children_of(node(0))) {
    const auto words = command_line_of(child);
    if (words.size() > 1 && words[1] == "head") return child;
  }
  return 0;
}

std::vector<pid_t> Cluster::workers(int machine) const {
  std::vector<pid_t> found;
  for (pid_t child : children_of(node(machine))) {
    const auto words = command_line_of(child);
    if (!words.empty() && words[0] != starling_program()) found.push_back(child);
  }
  return found;
}

void Cluster::kill_node(int machine) {
  auto& node = nodes_[static_cast<std::size_t>(machine)];
  if (!node) return;
  node->signal(SIGKILL);
  node->wait(10s);
}

std::unique_ptr<Program> Cluster::launch(int machine, std::vector<std::string> argv,
                                         std::vector<std::string> environment) {
  Program::Spec spec;
  spec.argv = std::move(argv);
  spec.environment = this->environment(machine);
  spec.environment.insert(spec.environment.end(), environment.begin(), environment.end());
  spec.output = folder_ / ("out" + std::to_string(launched_++));
  if (options_.clock_ahead) spec.clock_ahead = options_.clock_ahead(machine);
  return std::make_unique<Program>(network_.machine(machine), spec);
}

Finished Cluster::run(int machine, std::vector<std::string> argv,
                      std::chrono::milliseconds patience) {
  auto program = launch(machine, std::move(argv));
  const auto code = program->wait(patience);
  return {code.value_or(-1), program->output()};
}

Finished Cluster::starling(int machine, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), starling_program());
  return run(machine, std::move(arguments));
}

Json Cluster::list(int machine, const std::string& kind) {
  const Finished listed = starling(machine, {"list", kind, "--json"});
  return listed.code == 0 ? Json::parse(listed.output, nullptr, /*allow_exceptions=*/false)
                          : Json();
}

int Cluster::members(int machine) {
  const Json nodes = list(machine, "nodes");
  if (!nodes.is_array()) return -1;
  int alive = 0;
  for (const Json& node : nodes) alive += node.value("state", "alive") == "alive" ? 1 : 0;
  return alive;
}

bool Cluster::wait_for_members(int count, std::chrono::milliseconds patience, int asked) {
  return eventually([&] { return members(asked) == count; }, patience, 50ms);
}

std::string Cluster::logs(std::size_t lines) const {
  std::string text;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file(ignored) || (!name.starts_with("node") && !name.starts_with("out") &&
                                            entry.path().extension() != ".log"))
      continue;
    std::vector<std::string> all;
    std::istringstream in(file_text(entry.path()));
    for (std::string line; std::getline(in, line);) all.push_back(line);
    if (all.empty()) continue;
    text += "-- " + entry.path().string() + "\n";
    for (std::size_t i = all.size() > lines ? all.size() - lines : 0; i < all.size(); ++i)
      text += all[i] + "\n";
  }
  return text;
}

void Cluster::stop() {
  if (runs(0)) starling(0, {"stop", "--force"});
  for (auto& node : nodes_) {
    if (node) node->wait(10s);
  }
  nodes_.clear();
  nodes_.resize(static_cast<std::size_t>(options_.machines));
}

std::string starling_program() {
  const char* folder = std::getenv("STARLING_BIN");
  return std::string(folder ? folder : STARLING_BIN_DIR) + "/starling";
}

// Read before main(): under a chroot, /proc says another path once a thread has been in other
// namespaces.
static const std::string kOwnProgram = fs::read_symlink("/proc/self/exe").string();
std::string own_program() { return kOwnProgram; }

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  if (parent <= 0) return found;
  std::error_code error;
  for (const auto& task :
       fs::directory_iterator("/proc/" + std::to_string(parent) + "/task", error)) {
    std::istringstream children(file_text(task.path() / "children"));
    for (pid_t child = 0; children >> child;) found.push_back(child);
  }
  return found;
}

std::vector<std::string> command_line_of(pid_t pid) {
  std::vector<std::string> words;
  std::istringstream text(file_text("/proc/" + std::to_string(pid) + "/cmdline"));
  for (std::string word; std::getline(text, word, '\0');) words.push_back(word);
  return words;
}

long resident_kib(pid_t pid) {
  std::istringstream status(file_text("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  }
  return -1;
}

void fill_disk(const fs::path& folder) {
  std::ofstream file(folder / "filler", std::ios::binary);
  const std::string block(4096, 'f');
  while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
}

}  // namespace runtime::test
