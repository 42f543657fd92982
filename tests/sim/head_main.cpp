#include "head_main.h"

#include <deque>
#include <memory>
#include <utility>

#include "placement/scheduler/cluster_scheduler.h"
#include "runtime/core/simulation.h"
#include "runtime/head/head_process.h"
#include "tests/support/table_indexes.h"

namespace sim {

namespace {

/// Batches reach the disk one after another, each whole; the news of it is a separate step, so
/// that a crash may come between.
class SimulatedJournal final : public runtime::Journal {
 public:
  /// `turn_ended` runs at the end of every turn of the head's that changed something.
  SimulatedJournal(World& world, runtime::EventLoop& loop, JournalDisk& disk,
                   std::function<void()> turn_ended)
      : world_(world), loop_(loop), disk_(disk), turn_ended_(std::move(turn_ended)) {}
  ~SimulatedJournal() override { *alive_ = false; }

  runtime::Status load(
      const std::function<runtime::Status(const std::string& key, const std::string& value)>& entry)
      override {
    for (const auto& [key, value] : disk_) {
      if (runtime::Status status = entry(key, value); !status.ok()) return status;
    }
    return {};
  }
  void write(std::vector<runtime::JournalWrite> batch,
             runtime::UniqueFunction<void()> recorded) override {
    turn_ended_();
    waiting_.push_back({std::move(batch), std::move(recorded)});
    if (waiting_.size() == 1) record_first();
  }
  runtime::Status trouble() const override { return trouble_; }

 private:
  struct Batch {
    std::vector<runtime::JournalWrite> writes;
    runtime::UniqueFunction<void()> recorded;
  };

  void record_first() {
    runtime::simulation()->use_disk([this, alive = alive_, process = world_.current()](int error) {
      if (!*alive || process->crashed) return;
      if (error != 0) {
        trouble_ = runtime::resource_exhausted("the simulated disk is full");
        return record_first();
      }
      trouble_ = {};
      for (const runtime::JournalWrite& write : waiting_.front().writes) {
        if (write.value)
          disk_[write.key] = *write.value;
        else
          disk_.erase(write.key);
      }
      loop_.post([this, alive] {
        if (!*alive) return;
        Batch first = std::move(waiting_.front());
        waiting_.pop_front();
        if (!waiting_.empty()) record_first();
        first.recorded();
      });
    });
  }

  World& world_;
  runtime::EventLoop& loop_;
  JournalDisk& disk_;
  const std::function<void()> turn_ended_;
  std::deque<Batch> waiting_;
  runtime::Status trouble_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

std::string value_of(const std::vector<std::string>& argv, const std::string& option) {
  for (std::size_t i = 0; i + 1 < argv.size(); ++i) {
    if (argv[i] == option) return argv[i + 1];
  }
  return "";
}

}  // namespace

void run_head(World& world, JournalDisk& disk, const std::string& token,
              const std::vector<std::string>& argv) {
  Process* process = world.current();
  runtime::EventLoop loop;
  runtime::HeadProcessOptions options;
  options.cluster = *runtime::ClusterId::from_hex(value_of(argv, "--cluster"));
  options.node = *runtime::NodeId::from_hex(value_of(argv, "--node"));
  options.token = token;
  options.socket = value_of(argv, "--socket");
  options.scheduler = std::make_unique<placement::ClusterScheduler>();
  const runtime::ClusterTables* tables = nullptr;  // once it runs
  const auto check_tables = [&world, &tables] {
    const std::string wrong = tables ? support::index_errors(*tables) : "";
    if (!wrong.empty()) world.fail("the head's tables: " + wrong);
  };
  options.open_journal =
      [&](runtime::EventLoop& on) -> runtime::Result<std::unique_ptr<runtime::Journal>> {
    return std::unique_ptr<runtime::Journal>(
        std::make_unique<SimulatedJournal>(world, on, disk, check_tables));
  };
  auto head = runtime::HeadProcess::start(loop, std::move(options));
  if (!head.ok())
    return world.note("head: " + std::to_string(static_cast<int>(head.status().code())));
  if (process->crashed) return;
  tables = &(*head)->tables();
  check_tables();
  process->on_crash = [raw = head->get()] { raw->quit(runtime::cancelled("crashed")); };
  (void)(*head)->wait();
  process->on_crash = nullptr;
}

}  // namespace sim
