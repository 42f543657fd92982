#include "runtime/node/submitter_gate.h"

#include <variant>

namespace runtime {

namespace {

struct IsForSubmitters {
  const OwnsJob& owns_job;

  template <class Body>
  bool operator()(const Body&) const {
    return false;
  }
  bool operator()(const control::SubmitJob&) const { return true; }
  bool operator()(const control::QueueJob&) const { return true; }
  bool operator()(const control::OfferFiles&) const { return true; }
  bool operator()(const control::StoreFile&) const { return true; }
  bool operator()(const control::QueryJob&) const { return true; }
  bool operator()(const control::QueryGroup&) const { return true; }
  bool operator()(const control::QueryCluster&) const { return true; }
  bool operator()(const control::CancelJob& body) const { return owns_job(body.job); }
};

}  // namespace

Status check_submitter(const ControlRequest& request, const OwnsJob& owns_job) {
  if (std::visit(IsForSubmitters{owns_job}, request.body)) return {};
  return invalid_argument(
      "a submitter's token is for `starling submit`, for stopping one's own jobs and for `starling "
      "status`; all else needs the cluster's token");
}

}  // namespace runtime
