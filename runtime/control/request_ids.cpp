#include "runtime/control/request_ids.h"

#include <variant>

namespace runtime {

namespace {

/// An overload for each kind: a new one does not compile until it is decided about.
struct CarriesId {
  // They change what they find, and their answers tell of that.
  bool operator()(const control::KvPut&) const { return true; }
  bool operator()(const control::KvAdd&) const { return true; }
  bool operator()(const control::KvDelete&) const { return true; }
  bool operator()(const control::CreateGroup&) const { return true; }
  bool operator()(const control::RemoveGroup&) const { return true; }
  bool operator()(const control::DrainNode&) const { return true; }
  bool operator()(const control::KillActor& body) const { return body.may_restart; }
  bool operator()(const control::TerminateActor& body) const { return body.restart; }
  bool operator()(const ObjectControl& body) const {
    return std::holds_alternative<control::Publish>(body) ||
           std::holds_alternative<control::Unpublish>(body);
  }

  // They name what they make or end, by its own id or an incarnation, so that a second time
  // changes nothing.
  bool operator()(const control::CreateActor&) const { return false; }
  bool operator()(const control::ParkActor&) const { return false; }
  bool operator()(const control::SaveState&) const { return false; }
  bool operator()(const control::RegisterNode&) const { return false; }
  bool operator()(const control::StartJob&) const { return false; }
  bool operator()(const control::EndJob&) const { return false; }
  bool operator()(const control::CancelJob&) const { return false; }
  bool operator()(const control::ActorExited&) const { return false; }
  bool operator()(const control::ActorsExited&) const { return false; }
  bool operator()(const control::StopNode&) const { return false; }
  bool operator()(const control::ChangeToken&) const { return false; }

  // Questions.
  bool operator()(const control::Heartbeat&) const { return false; }
  bool operator()(const control::ResolveActor&) const { return false; }
  bool operator()(const control::QueryActor&) const { return false; }
  bool operator()(const control::KvGet&) const { return false; }
  bool operator()(const control::QueryCluster&) const { return false; }
  bool operator()(const control::WatchActor&) const { return false; }
  bool operator()(const control::WatchNodes&) const { return false; }
  bool operator()(const control::QueryGroup&) const { return false; }
  bool operator()(const control::QueryJob&) const { return false; }
  bool operator()(const control::QueryDemand&) const { return false; }
  bool operator()(const ObserveControl&) const { return false; }

  // Sent again every second for as long as it is so.
  bool operator()(const control::ConstructorAwaited&) const { return false; }

  // Served by nodes and workers, over connections that end with the caller: never repeated. What
  // the head asks of nodes names incarnations, or all that there is to be.
  bool operator()(const control::RegisterDriver&) const { return false; }
  bool operator()(const control::QueueJob&) const { return false; }
  bool operator()(const control::SubmitJob&) const { return false; }
  bool operator()(const control::ReadLog&) const { return false; }
  bool operator()(const control::OfferFiles&) const { return false; }
  bool operator()(const control::StoreFile&) const { return false; }
  bool operator()(const control::DriverDone&) const { return false; }
  bool operator()(const control::StartActor&) const { return false; }
  bool operator()(const control::StopActor&) const { return false; }
  bool operator()(const control::BuildActor&) const { return false; }
  bool operator()(const control::DrainActor&) const { return false; }
  bool operator()(const control::FetchFile&) const { return false; }
  bool operator()(const control::Reserve&) const { return false; }
  bool operator()(const control::TakeOver&) const { return false; }
  bool operator()(const control::Leave&) const { return false; }
  bool operator()(const control::ExpectToken&) const { return false; }
};

}  // namespace

bool carries_id(const ControlRequest::Body& body) { return std::visit(CarriesId{}, body); }

void identify(ControlRequest& request) {
  if (request.id.is_none() && carries_id(request.body)) request.id = RequestId::random();
}

}  // namespace runtime
