#include "runtime/control/group_client.h"

#include <utility>

namespace runtime {

void GroupClient::create(GroupSpec spec, Deadline deadline, Callback<GroupState> done) {
  node_.ask(control::CreateGroup{std::move(spec)}, deadline, std::move(done));
}

void GroupClient::remove(GroupId group, Deadline deadline, Done done) {
  node_.tell(control::RemoveGroup{group}, deadline, std::move(done));
}

void GroupClient::query(GroupId group, std::string name, std::string name_space, bool wait,
                        Deadline deadline, Callback<GroupState> done) {
  node_.ask(control::QueryGroup{group, std::move(name), std::move(name_space), wait}, deadline,
            std::move(done));
}

}  // namespace runtime
