// Forward declarations of calls and of what they use.
#pragma once

#include <memory>

#include "runtime/codec/fwd.h"
#include "runtime/core/clock.h"

namespace boost::asio {
class any_io_executor;
template <class T, class Executor>
class awaitable;
}  // namespace boost::asio

namespace runtime {

class ActivityPage;
class Channel;
class Event;
class EventLoop;
class Timer;
struct Endpoint;
struct Message;
struct ObjectLocation;

class ActorClass;
class ActorClient;
class ActorClients;
class BlockedCalls;
class CallContext;
class CallObjects;
class CallOwner;
struct CallerContext;
struct CallNotice;
struct CallReply;
class CallTarget;
enum class CancelMode;
struct CoroutineState;
class Lineage;
struct MethodEntry;
struct ObjectContext;
class ObjectState;
class ObjectTable;
struct OutgoingCall;
class Process;
class Producer;
struct QueryContext;
class Registry;
class StateKeeper;
class StoredObject;
class StreamSink;
class StreamState;
class WorkerLink;

template <class T>
class ActorGroup;
template <class T>
class ActorHandle;
template <class T>
class ObjectRef;
template <class T>
class Stream;
template <class T>
class StreamWriter;

using CallerContextPtr = std::shared_ptr<const CallerContext>;
using ObjectContextPtr = std::shared_ptr<const ObjectContext>;
/// The shared state of an ObjectRef: what refs, calls and tables pass around.
using ObjectStatePtr = std::shared_ptr<ObjectState>;
using OutgoingCallPtr = std::shared_ptr<OutgoingCall>;
using QueryContextPtr = std::shared_ptr<const QueryContext>;

}  // namespace runtime
