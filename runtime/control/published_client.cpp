#include "runtime/control/published_client.h"

#include <utility>

namespace runtime {

void PublishedClient::publish(control::Publish request, Deadline deadline, Done done) {
  node_.tell(ObjectControl{std::move(request)}, deadline, std::move(done));
}

void PublishedClient::find(control::FindPublished request, Deadline deadline,
                           Callback<PublishedObject> done) {
  node_.ask_objects(std::move(request), deadline, std::move(done));
}

void PublishedClient::unpublish(control::Unpublish request, Deadline deadline, Done done) {
  node_.tell(ObjectControl{std::move(request)}, deadline, std::move(done));
}

}  // namespace runtime
