@0xb7d1f0a94c2e8835;
# What people and tools ask to see what a cluster does: pages of actors, load, workers, stacks, traces. Carried by the control plane.
# Numbers, types and defaults never change; append, and retire by renaming to obsoleteX.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("runtime::schema");

struct ObserveRequest {
  union {
    # To the head.
    listActors :group {
      filters @0 :List(Filter);
      after @1 :Data;            # actors whose ids are larger; empty: from the first
      limit @2 :UInt32;
    }
    readHead @3 :Void;           # its own numbers; reply: numbers
    # To a node, which answers for itself and its processes.
    readLoad :group { actorsMax @4 :UInt32; }
    listWorkers @5 :Void;
    readStack :group { actor @6 :Data; }
    readMetrics @7 :Void;        # reply: text, as Prometheus reads it
    trace :group {
      forMs @8 :UInt64;          # processes record for this long from now; 0: says nothing about recording
      read @9 :Bool;             # reply: trace, what was recorded
    }
    readClock @10 :Void;         # reply: numbers
    measurePeer :group { address @11 :Text; bytes @12 :UInt64; }  # reply: numbers
    sink @13 :Data;              # taken and dropped; reply: numbers
    readStart @14 :Data;         # an actor; reply: text, what keeps its process from being started
  }
}

struct Filter { key @0 :Text; value @1 :Text; }

struct ObserveReply {
  union {
    load @0 :NodeLoad;
    workers @1 :List(WorkerInfo);
    stack @2 :StackReport;
    text @3 :Data;
    trace @4 :TraceChunk;
    numbers @5 :List(Number);
  }
}

struct Number { name @0 :Text; value @1 :Float64; }

struct NodeLoad {
  node @0 :Data;
  atNs @1 :UInt64;             # the node's steady clock
  numbers @2 :List(Number);
  classes @3 :List(ClassLoad);
  actors @4 :List(ActorLoad);
  actorsLeftOut @5 :UInt64;
}

struct ClassLoad {
  name @0 :Text;
  calls @1 :UInt64;            # ended, those that failed included
  failed @2 :UInt64;
  sumNs @3 :UInt64;
  buckets @4 :List(UInt64);    # by how long they took
  waiting @5 :UInt64;
  actors @6 :UInt64;
}

struct ActorLoad {
  actor @0 :Data;
  className @1 :Text;
  pid @2 :Int32;
  calls @3 :UInt64;
  failed @4 :UInt64;
  busyNs @5 :UInt64;
  waiting @6 :UInt64;
  running @7 :Text;            # a method that runs now
  runningNs @8 :UInt64;        # for how long it has run
}

struct WorkerInfo {
  worker @0 :Data;
  node @1 :Data;
  job @2 :Data;
  pid @3 :Int32;
  state @4 :Text;
  actor @5 :Data;              # of a process for one
  className @6 :Text;
  actors @7 :UInt32;
  memoryBytes @8 :UInt64;
  cpuSeconds @9 :Float64;
  threads @10 :UInt32;
  process @11 :Text;           # what the kernel says: "running", "sleeping", "stopped"
  ageMs @12 :UInt64;
}

struct StackReport {
  pid @0 :Int32;
  className @1 :Text;
  process @2 :Text;
  note @3 :Text;               # what keeps threads from answering, and the cure
  threads @4 :List(ThreadStack);
}

struct ThreadStack {
  tid @0 :Int32;
  name @1 :Text;
  state @2 :Text;
  waitsIn @3 :Text;            # the kernel function that it waits in
  actor @4 :Data;
  running @5 :Text;
  runningNs @6 :UInt64;
  frames @7 :List(Text);       # innermost first; none: it did not answer
}

struct TraceChunk {
  atNs @0 :UInt64;             # the node's steady clock
  processes @1 :List(TraceOfProcess);
}

struct TraceOfProcess {
  pid @0 :Int32;
  name @1 :Text;
  names @2 :List(Text);        # of methods, by the numbers in the events
  events @3 :Data;             # TraceEvent, 64 bytes each
  lost @4 :UInt64;             # overwritten before they were read
}
