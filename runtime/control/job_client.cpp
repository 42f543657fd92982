#include "runtime/control/job_client.h"

#include <utility>

namespace runtime {

void JobClient::queue(control::QueueJob request, Deadline deadline, Callback<GroupState> done) {
  node_.ask(std::move(request), deadline, std::move(done));
}

void JobClient::submit(JobRequest request, NodeClient::JobHandlers handlers, Deadline deadline,
                       Callback<JobId> done) {
  node_.set_on_job(std::move(handlers));
  node_.ask(control::SubmitJob{std::move(request.argv), std::move(request.working_dir),
                               std::move(request.env), request.detached, std::move(request.files),
                               std::move(request.program), request.job, request.place},
            deadline, std::move(done));
}

void JobClient::cancel(JobId job, Deadline deadline, Done done) {
  node_.tell(control::CancelJob{job}, deadline, std::move(done));
}

void JobClient::query(JobId job, Deadline deadline, Callback<JobInfo> done) {
  node_.ask(control::QueryJob{job}, deadline, std::move(done));
}

void JobClient::offer_files(std::uint64_t bytes, std::uint64_t count,
                            std::vector<std::string> hashes, Deadline deadline,
                            Callback<std::vector<std::uint32_t>> done) {
  node_.ask<control::FilesWanted>(control::OfferFiles{bytes, count, std::move(hashes)}, deadline,
                                  [done = std::move(done)](Result<control::FilesWanted> wanted) {
                                    if (wanted.ok())
                                      done(std::move(wanted->places));
                                    else
                                      done(wanted.status());
                                  });
}

void JobClient::store_file(std::string hash, std::uint64_t bytes, std::uint64_t offset,
                           std::string data, Deadline deadline, Done done) {
  node_.tell(control::StoreFile{std::move(hash), bytes, offset, std::move(data)}, deadline,
             std::move(done));
}

}  // namespace runtime
