#include "runtime/job/job_fetcher.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/control/control_channel.h"
#include "runtime/control/control_codec.h"
#include "runtime/core/log.h"
#include "runtime/transport/listener.h"

namespace runtime {

namespace {

constexpr std::size_t kFetchPartBytes = 4 << 20;
constexpr std::size_t kListBytesMax = 64 << 20;
constexpr auto kFetchPartTimeout = std::chrono::seconds(30);

}  // namespace

/// One folder in transit.
struct JobFetcher::Fetch {
  JobId job;
  Deadline deadline;
  std::shared_ptr<Channel> channel;
  std::string list;
  std::vector<JobFile> files;
  std::vector<JobFile> missing;  // not fetched yet; the last one is in transit
  std::uint64_t received = 0;    // of that
};

JobFetcher::JobFetcher(EventLoop& loop, Credentials credentials, JobFiles& files)
    : loop_(loop), credentials_(std::move(credentials)), files_(files) {}

JobFetcher::~JobFetcher() = default;

bool JobFetcher::is_shipped(JobId job, const std::string& working_dir) {
  return working_dir.ends_with("/" + job.hex() + "/work");
}

void JobFetcher::offer(JobId job, std::vector<JobFile> files) {
  // The list travels as the files of a submission: one form, one decoder.
  control::SubmitJob body;
  body.files = std::move(files);
  known_[job].list =
      std::string(encode(ControlRequest{job, kFetchPartTimeout, std::move(body)}).text());
}

void JobFetcher::forget(JobId job) {
  auto found = known_.find(job);
  if (found == known_.end()) return;
  if (found->second.waiting.empty())
    known_.erase(found);
  else
    found->second.is_over = true;
}

Result<std::string> JobFetcher::read_list(const std::string& name, std::uint64_t offset) const {
  for (const auto& [job, known] : known_) {
    if (known.list.empty() || name != folder_name(job)) continue;
    return offset >= known.list.size() ? std::string() : known.list.substr(offset, kFetchPartBytes);
  }
  return not_found("this node does not have the folder of " + name.substr(0, 64) + " (any more)");
}

void JobFetcher::find(JobId job, const std::string& from, Deadline deadline, Found found) {
  Known& known = known_[job];
  if (!known.folder.empty()) return found(known.folder);
  known.waiting.push_back(std::move(found));
  if (known.waiting.size() > 1) return;
  auto fetch = std::make_shared<Fetch>();
  fetch->job = job;
  fetch->deadline = deadline;
  auto endpoint = Endpoint::parse(from);
  if (!endpoint.ok()) return finish(fetch, endpoint.status());
  LOG(info, "fetching the folder of job {} from {}", job.short_hex(), from);
  ConnectOptions options;
  options.deadline = deadline;
  connect(loop_, *endpoint, credentials_, options,
          lifetime_.guard([this, fetch](Result<std::shared_ptr<Channel>> channel) {
            if (!channel.ok()) return finish(fetch, channel.status());
            fetch->channel = *std::move(channel);
            read_list_on(fetch);
          }));
}

void JobFetcher::read(const std::shared_ptr<Fetch>& fetch, const std::string& name,
                      std::uint64_t offset, std::function<void(std::string)> done) {
  if (steady_now() > fetch->deadline) return finish(fetch, deadline_exceeded("it takes too long"));
  ControlRequest request{fetch->job, kFetchPartTimeout, control::FetchFile{name, offset}};
  send_request(*fetch->channel, request,
               lifetime_.guard([this, fetch, done = std::move(done)](Result<ControlAnswer> answer) {
                 if (!answer.ok()) return finish(fetch, answer.status());
                 if (auto* bytes = std::get_if<std::string>(&*answer))
                   return done(std::move(*bytes));
                 finish(fetch,
                        unavailable("the job's node answered something else than was asked"));
               }));
}

void JobFetcher::read_list_on(const std::shared_ptr<Fetch>& fetch) {
  read(fetch, folder_name(fetch->job), fetch->list.size(), [this, fetch](std::string part) {
    if (!part.empty()) {
      fetch->list += part;
      if (fetch->list.size() > kListBytesMax)
        return finish(fetch, resource_exhausted("the list of its files is too long"));
      return read_list_on(fetch);
    }
    auto request = decode_control_request(Buffer::copy_of(fetch->list));
    if (!request.ok()) return finish(fetch, request.status());
    auto* body = std::get_if<control::SubmitJob>(&request->body);
    if (!body) return finish(fetch, unavailable("the job's node sent no list of files"));
    fetch->files = std::move(body->files);
    fetch_files(fetch);
  });
}

void JobFetcher::fetch_files(const std::shared_ptr<Fetch>& fetch) {
  control::OfferFiles offer;
  std::vector<JobFile> named;
  for (const JobFile& file : fetch->files) {
    if (file.kind != JobFile::Kind::kFile) continue;
    offer.bytes += std::min<std::uint64_t>(file.bytes, 1ull << 40);
    offer.hashes.push_back(file.hash);
    named.push_back(file);
  }
  offer.count = fetch->files.size();
  files_.offer(offer, [this, fetch, named = std::move(named)](Result<control::FilesWanted> wanted) {
    if (!wanted.ok()) return finish(fetch, wanted.status());
    std::set<std::string> seen;
    for (std::uint32_t place : wanted->places) {
      if (seen.insert(named[place].hash).second) fetch->missing.push_back(named[place]);
    }
    fetch_file(fetch);
  });
}

void JobFetcher::fetch_file(const std::shared_ptr<Fetch>& fetch) {
  if (fetch->missing.empty()) {
    return files_.unpack(fetch->job, fetch->files, {}, std::nullopt,
                         [this, fetch](Result<JobFolder> folder) {
                           if (folder.ok())
                             finish(fetch, folder->work.string());
                           else
                             finish(fetch, folder.status());
                         });
  }
  const JobFile& file = fetch->missing.back();
  const auto store = [this, fetch](std::string part) {
    const JobFile& fetched = fetch->missing.back();
    if (part.empty() && fetched.bytes != 0)
      return finish(fetch,
                    unavailable("the job's node has '" + fetched.path + "' shorter than it said"));
    const std::uint64_t offset = std::exchange(fetch->received, fetch->received + part.size());
    files_.store(fetch->channel->serial(), {fetched.hash, fetched.bytes, offset, std::move(part)},
                 [this, fetch](Status status) {
                   if (!status.ok()) return finish(fetch, std::move(status));
                   if (fetch->received == fetch->missing.back().bytes) {
                     fetch->missing.pop_back();
                     fetch->received = 0;
                   }
                   fetch_file(fetch);
                 });
  };
  if (file.bytes == 0) return store("");
  read(fetch, file.hash, fetch->received, store);
}

void JobFetcher::finish(const std::shared_ptr<Fetch>& fetch, Result<std::string> folder) {
  if (fetch->channel) {
    files_.forget(fetch->channel->serial());
    fetch->channel->close(cancelled("fetched"));
  }
  Known& known = known_[fetch->job];
  if (folder.ok())
    known.folder = *folder;
  else
    folder = folder.status().with_context("fetching the folder of job " + fetch->job.short_hex());
  std::vector<Found> waiting = std::move(known.waiting);
  known.waiting.clear();
  if (known.is_over) {
    known_.erase(fetch->job);
    files_.release(fetch->job);
    folder = cancelled("job " + fetch->job.short_hex() + " has ended");
  }
  for (Found& found : waiting) found(folder);
}

}  // namespace runtime
