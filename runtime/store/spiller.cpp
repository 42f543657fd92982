#include "runtime/store/spiller.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/core/simulation.h"

namespace runtime::object_detail {

namespace {

// Written or about to be at any time: enough to keep a disk busy, little enough to stop soon when
// memory is freed otherwise.
constexpr std::uint64_t kWritingBytesMax = 256 << 20;
// How soon to look again when everything is in use: a caller waits for room, or the store is only
// rather full.
constexpr std::chrono::milliseconds kRetryUrgent{20};
constexpr std::chrono::milliseconds kRetry{500};
constexpr std::chrono::seconds kPauseAfterFailure{1};

std::uint64_t share(double fraction, std::uint64_t bytes) {
  return static_cast<std::uint64_t>(fraction * static_cast<double>(bytes));
}

}  // namespace

Spiller::Spiller(std::shared_ptr<StoreMemory> memory, std::unique_ptr<SpillFolder> folder,
                 const SpillOptions& options, AskHolders ask_holders)
    : memory_(std::move(memory)),
      folder_(std::move(folder)),
      options_(options),
      ask_holders_(std::move(ask_holders)),
      retry_timer_(memory_->loop.context()) {
  if (simulation()) return;
  if (Status status = disk_thread_.start(); !status.ok())  // each spill tries again
    LOG(warn, "objects cannot be moved to disk: {}", status.message());
}

Spiller::~Spiller() {
  for (std::uint64_t operation : simulated_operations_) simulation()->forget(operation);
}

template <class Work, class Done>
void Spiller::on_disk_thread(Work work, Done done) {
  if (Simulation* simulated = simulation()) {
    auto id = std::make_shared<std::uint64_t>(0);
    *id = simulated->use_disk(
        [this, work = std::move(work), done = std::move(done), id](int error) mutable {
          std::erase(simulated_operations_, *id);
          folder_->fail_next(error);
          Status status = work(*folder_, *memory_->segment);
          memory_->loop.post([weak = weak_from_this(), done = std::move(done),
                              status = std::move(status)]() mutable {
            if (auto self = weak.lock()) done(*self, std::move(status));
          });
        });
    simulated_operations_.push_back(*id);
    return;
  }
  if (Status started = disk_thread_.start(); !started.ok()) {
    memory_->loop.post([weak = weak_from_this(), started, done = std::move(done)]() mutable {
      if (auto self = weak.lock()) done(*self, std::move(started));
    });
    return;
  }
  disk_thread_.post([weak = weak_from_this(), memory = memory_, folder = folder_,
                     work = std::move(work), done = std::move(done)]() mutable {
    Status status = work(*folder, *memory->segment);
    memory->loop.post([weak, done = std::move(done), status = std::move(status)]() mutable {
      if (auto self = weak.lock()) done(*self, std::move(status));
    });
  });
}

// Above the high-water mark down to the low one; and in any case what those in line need.
std::uint64_t Spiller::wanted_bytes() const {
  const ExtentTable& table = memory_->table;
  const std::uint64_t used = table.used_bytes();
  std::uint64_t wanted = 0;
  if (used > share(options_.high_water, table.capacity_bytes()))
    wanted = used - share(options_.low_water, table.capacity_bytes());
  const std::uint64_t free = table.capacity_bytes() - used;
  if (const std::uint64_t waited_for = memory_->line->wanted_bytes(); waited_for > 0) {
    // Free memory in pieces does not help where it is needed in one.
    wanted = std::max(wanted, waited_for > free ? waited_for - free : std::min(waited_for, used));
  }
  return wanted - std::min(wanted, writing_bytes_);
}

bool Spiller::may_write(std::uint64_t bytes) const {
  std::uint64_t on_disk = spilled_bytes();
  for (const auto& [extent, parked] : parked_) on_disk -= parked->size();
  return writing_bytes_ < kWritingBytesMax &&
         on_disk + writing_bytes_ + bytes <= options_.limit_bytes;
}

// Neither has room, but one that waits to come back leaves some on disk when it is taken off it.
// One at a time.
void Spiller::park_one() {
  if (parking_ || !parked_.empty() || writing_bytes_ > 0) return;
  for (const auto& [extent, restoring] : restoring_) {
    auto found = memory_->table.find(extent);
    if (restoring.has_room || !found) continue;
    parking_ = true;
    auto bytes = std::make_shared<std::vector<std::byte>>(found->range.size);
    on_disk_thread(
        [id = extent, bytes](SpillFolder& folder, Segment&) { return folder.read(id, *bytes); },
        [id = extent, bytes](Spiller& self, Status status) { self.on_parked(id, bytes, status); });
    return;
  }
}

void Spiller::on_parked(std::uint64_t extent, Parked bytes, const Status& status) {
  parking_ = false;
  auto restoring = restoring_.find(extent);
  if (restoring == restoring_.end() || restoring->second.has_room) return;
  if (!status.ok()) return finish_restore(extent, status);
  folder_->remove(extent);
  parked_[extent] = std::move(bytes);
  failed_until_ = {};
  balance();
}

void Spiller::balance() {
  if (stopped_) return;
  std::uint64_t wanted = wanted_bytes();
  while (wanted > 0 && memory_->evict_copy && memory_->evict_copy()) wanted = wanted_bytes();
  if (wanted == 0) return;
  if (!folder_) return retry_later();
  if (steady_now() < failed_until_) {
    park_one();
    return retry_later();
  }
  bool full = false;
  for (const Extent& extent : memory_->table.vacatable(wanted)) {
    full = !may_write(extent.range.size);
    if (full) break;
    wanted -= std::min(wanted, extent.range.size);
    spill(extent);
  }
  if (wanted == 0) return;
  if (full) park_one();
  if (full || asking_) return retry_later();
  asking_ = true;
  ask_holders_(wanted, [weak = weak_from_this()](bool any) {
    auto self = weak.lock();
    if (!self) return;
    self->asking_ = false;
    if (any)
      self->balance();
    else
      self->retry_later();
  });
}

void Spiller::retry_later() {
  if (stopped_ || writing_bytes_ > 0) return;
  const Deadline at = deadline_after(memory_->line->empty() ? kRetry : kRetryUrgent);
  if (at >= retry_at_) return;
  retry_at_ = at;
  retry_timer_.expires_at(at);
  retry_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& ec) {
    auto self = weak.lock();
    if (!self || ec) return;
    self->retry_at_ = Deadline::max();
    self->balance();
  });
}

void Spiller::spill(const Extent& extent) {
  // The pin keeps the range from being used again while it is read.
  CHECK(memory_->table.pin(extent.id, kStoreItself));
  writing_bytes_ += extent.range.size;
  on_disk_thread(
      [extent](SpillFolder& folder, Segment& segment) {
        return folder.write(extent.id,
                            {segment.readable() + extent.range.begin, extent.range.size});
      },
      [extent](Spiller& self, Status status) { self.on_written(extent, std::move(status)); });
}

void Spiller::on_written(const Extent& extent, Status status) {
  ExtentTable& table = memory_->table;
  writing_bytes_ -= extent.range.size;
  const bool wanted_elsewhere = table.pins_of(extent.id) > 1;
  CHECK(table.unpin(extent.id, kStoreItself));
  if (!status.ok()) {
    if (failure_ != status) LOG(warn, "object store: {}", status.message());
    failure_ = std::move(status);
    failed_until_ = deadline_after(kPauseAfterFailure);
  } else if (stopped_ || wanted_elsewhere || !table.find(extent.id)) {
    folder_->remove(extent.id);
  } else {
    failure_ = {};
    ++spills_;
    table.vacate(extent.id);
  }
  memory_->changed();
  balance();
}

void Spiller::restore(std::uint64_t extent, Deadline deadline, Restored done) {
  auto [restoring, first] = restoring_.try_emplace(extent);
  restoring->second.waiting.push_back(std::move(done));
  if (!first) return;
  const std::uint64_t number = restoring->second.number = ++restore_attempts_;
  const std::uint64_t bytes = memory_->table.find(extent)->range.size;
  const auto is_wanted = [extent, number](const Spiller& self) {
    auto found = self.restoring_.find(extent);
    return found != self.restoring_.end() && found->second.number == number;
  };
  auto attempt = [self = shared_from_this(), extent, bytes, is_wanted] {
    if (!is_wanted(*self)) return true;
    auto range = self->memory_->take(bytes);
    if (range) self->on_room(extent, *range);
    return range.has_value();
  };
  auto give_up = [self = shared_from_this(), extent, is_wanted] {
    if (is_wanted(*self))
      self->finish_restore(extent, resource_exhausted("no room to bring it back from disk"));
  };
  memory_->line->wait(bytes, kStoreItself, deadline, std::move(attempt), std::move(give_up));
  balance();
}

void Spiller::on_room(std::uint64_t extent, ByteRange range) {
  restoring_[extent].has_room = true;
  auto parked = parked_.find(extent);
  on_disk_thread(
      [extent, range, bytes = parked == parked_.end() ? nullptr : parked->second](
          SpillFolder& folder, Segment& segment) -> Status {
        std::span<std::byte> to(segment.writable() + range.begin, range.size);
        if (!bytes) return folder.read(extent, to);
        std::memcpy(to.data(), bytes->data(), to.size());
        return {};
      },
      [extent, range](Spiller& self, Status status) {
        self.on_read(extent, range, std::move(status));
      });
}

void Spiller::on_read(std::uint64_t extent, ByteRange range, Status status) {
  if (!status.ok()) {
    memory_->table.put_back(range);
  } else if (memory_->table.settle(extent, range)) {
    ++restores_;
    forget(extent);
  }
  finish_restore(extent, status);
  memory_->changed();
}

void Spiller::finish_restore(std::uint64_t extent, const Status& status) {
  auto restoring = restoring_.extract(extent);
  if (restoring.empty()) return;
  for (Restored& done : restoring.mapped().waiting) done(status);
}

void Spiller::forget(std::uint64_t extent) {
  parked_.erase(extent);
  if (folder_) folder_->remove(extent);
}

void Spiller::stop() {
  stopped_ = true;
  retry_timer_.cancel();
}

std::string Spiller::describe() const {
  if (!folder_) return ", spilling to disk is off";
  std::string text = ", " + std::to_string(spilled_bytes()) + " of at most " +
                     std::to_string(options_.limit_bytes) + " spilled to " +
                     folder_->path().string();
  if (!failure_.ok()) text += " (" + failure_.message() + ")";
  return text;
}

}  // namespace runtime::object_detail
