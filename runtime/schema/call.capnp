# Calls from process to process: one request and one reply per call, and one-way notices about what they carried.
# Field numbers, types and defaults never change; fields are only appended.
@0xe5a0c4f2b7d81936;

using Cxx = import "/capnp/c++.capnp";
using Object = import "/runtime/schema/object.capnp";
$Cxx.namespace("runtime::schema");

# The encoding of a value (runtime/codec/encoder.h): in the frame's payload, in the message, or in a node's store.
struct Value {
  union {
    payload @0 :Void;
    bytes @1 :Data;
    stored @2 :Object.ObjectLocation;
  }
  refs @3 :List(Ref);        # what the references inside the encoding mean, by index
  indirect @4 :Bool;         # stored, and the sender is not its owner: who keeps it tells the store (ObjectRequest.keep)
  maker @5 :Text;            # stored: what made it, "task resize"; empty: it was put
  keeper @6 :Text;           # stored: "HOST:PORT" of the node of the process that can have it made again (ObjectRequest.remake); empty: no process can
}

# An object as another process learns of it. Only settled objects travel.
struct Ref {
  union {
    value @0 :Value;
    failure @1 :Failure;
  }
}

struct Failure {
  code @0 :UInt16;           # runtime::ErrorCode
  message @1 :Text;
}

struct CallRequest {
  actorId @0 :Data;          # 16 bytes
  incarnation @1 :UInt64;    # the actor's, as the caller knows it; 0: any
  method @2 :UInt64;         # hash of class, name and signature
  deadlineMs @3 :UInt64;     # time left when it was sent; never 0
  session @4 :UInt64;        # of the caller: random, the same as long as its process lives
  sequence @5 :UInt64;       # of the call within session and actor, from 1
  acknowledged @6 :UInt64;   # the caller has the replies of all calls up to here
  arguments @7 :Value;
  streamWindow @8 :UInt32;   # of a method that yields values: how many it may be ahead of the caller
  lends @9 :Bool;            # the arguments refer to objects; the callee says argumentsReleased when it holds none of them any more
}

struct CallReply {
  code @0 :UInt16;           # 0: success
  message @1 :Text;
  value @2 :Value;
  lends @3 :Bool;            # as in CallRequest; the caller says resultReleased
  gone @4 :Bool;             # a failure: the process has no such actor (any more); the head knows what became of it
  actorId @5 :Data;          # when it lends: what the call was, for a caller that waits for it no more and says resultReleased at once
  sequence @6 :UInt64;
}

struct CallNotice {
  actorId @0 :Data;
  sequence @1 :UInt64;       # of the call it is about
  union {
    cancel @2 :Void;         # the caller does not want the result any more
    argumentsReleased @3 :Void;
    resultReleased @4 :Void;
    forceCancel @5 :Void;    # and if the call runs, the process is to be ended
    streamItem @6 :StreamItem;
    streamTaken @7 :UInt64;  # how many values of the call's stream the caller has taken in all
    drained @8 :Void;        # the actor has ended as it was asked to: calls of this connection without a reply have not run, and never will
    waits @9 :List(WaitStep);  # a running call waits for this one, and others for that: a chain that may be a cycle; this one is awaited last
  }
}

# One call's wait for another.
struct WaitStep {
  session @0 :UInt64;        # of the process that waits
  number @1 :UInt64;         # of the wait in that process
  waiting @2 :Text;          # the call that runs, for people
  awaited @3 :Text;          # the call that it waits for, for people
  bounded @4 :Bool;          # it ends by itself, at its own limit
}

# One of the values that a call yields; they come in order, before the reply.
struct StreamItem {
  value @0 :Value;           # may be in the frame's payload
  lendId @1 :UInt64;         # the value refers to objects; the caller says resultReleased with this as the sequence. 0: it does not
}

# What the creator of an actor gives its constructor; opaque to nodes.
struct ConstructorCall {
  signature @0 :Text;
  arguments @1 :Value;
  maxConcurrency @2 :UInt32 = 1;  # calls at once in the default group
  concurrencyGroups @3 :List(ConcurrencyGroup);
  cpuAffinity @4 :List(UInt32);   # cores that the process is pinned to; empty: as it was started
}

# The options of an actor that its callers need to know; opaque to head and nodes.
struct CallerOptions {
  outOfOrder @0 :Bool;           # a call whose arguments are not there yet does not hold up those made after it
  methodTimeouts @1 :List(MethodTimeout);
}

struct MethodTimeout {
  method @0 :Text;
  ms @1 :UInt64;                 # never 0
}

# Calls of the methods assigned to it run concurrently with those of other groups.
struct ConcurrencyGroup {
  name @0 :Text;
  maxConcurrency @1 :UInt32;
}
