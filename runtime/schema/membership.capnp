@0x8aee6e339ed706a5;
# The cluster's control plane: what drivers, workers and the command line ask of their node, nodes of the head, the head of
# nodes, and nodes of workers. One request type for all of them: each side refuses what it does not serve.
# Numbers, types and defaults never change; append, and retire by renaming to obsoleteX.

using Cxx = import "/capnp/c++.capnp";
using Published = import "/runtime/schema/published.capnp";
using Observe = import "/runtime/schema/observe.capnp";
$Cxx.namespace("runtime::schema");

struct Amount { name @0 :Text; value @1 :Float64; }
struct Pair { key @0 :Text; value @1 :Text; }

struct FileSpec { path @0 :Text; bytes @1 :UInt64; hash @2 :Text; }

struct DriverInfo {
  executable @0 :FileSpec;
  libraries @1 :List(FileSpec);
  argv @2 :List(Text);
  pid @3 :Int32;
  warmWorkers @4 :UInt32;
  workingDir @5 :Text;
  nameSpace @6 :Text;        # of the job's actors; empty: the job's own
}

struct ActorSpec {
  actor @0 :Data;            # 16 bytes, as all ids
  className @1 :Text;
  name @2 :Text;
  resources @3 :List(Amount);
  env @4 :List(Pair);
  threads @5 :UInt32;
  group @6 :Data;            # empty: no bundle
  bundle @7 :UInt32;
  node @8 :Data;             # empty: any
  labels @9 :List(Pair);
  constructorArgs @10 :Data;
  nameSpace @11 :Text;       # empty in a request: the job's
  getIfExists @12 :Bool;
  detached @13 :Bool;
  outlivesJob @14 :Bool;     # filled in by the head: detached, or owned by one that is
  maxRestarts @15 :Int32;    # below zero: without limit
  createTimeoutMs @16 :UInt64;  # for each start; 0: the default
  owner @17 :Data;           # the actor that asked for it; empty: the job's driver
  ownerIncarnation @18 :UInt64;
  logPrefix @19 :Text;
  hasSavedState @20 :Bool;
  savedState @21 :Data;      # for a restart: what the class's save_state() returned last
  callerOptions @22 :Data;   # CallerOptions (call.capnp): what its callers need to know; handed on in its addresses
  shared @23 :Bool;          # in a worker process with other shared actors of its job
}

struct ActorAddress {
  actor @0 :Data;
  worker @1 :Data;
  node @2 :Data;
  className @3 :Text;
  unixPath @4 :Text;
  nodeAddress @5 :Text;
  incarnation @6 :UInt64;
  pid @7 :Int32;
  callerOptions @8 :Data;    # of its ActorSpec
  shared @9 :Bool;           # other shared actors are in that process
}

struct ActorInstance { actor @0 :Data; incarnation @1 :UInt64; }

struct DeathCause {
  text @0 :Text;
  pid @1 :Int32;
  exitCode @2 :Int32 = -1;
  signal @3 :Int32;
  outputTail @4 :Text;
}

struct ActorState {
  actor @0 :Data;
  job @1 :Data;
  node @2 :Data;
  worker @3 :Data;
  className @4 :Text;
  name @5 :Text;
  phase @6 :UInt16;          # ActorPhase
  pendingReason @7 :Text;
  pid @8 :Int32;
  resources @9 :List(Amount);
  death @10 :DeathCause;     # of the last incarnation that ended
  restarts @11 :UInt32;
  incarnation @12 :UInt64;
  nameSpace @13 :Text;
  detached @14 :Bool;
  version @15 :UInt64;       # grows with every change of the phase
}

struct GroupSpec {
  group @0 :Data;
  name @1 :Text;
  strategy @2 :UInt16;       # GroupStrategy
  bundles @3 :List(Bundle);
  struct Bundle { resources @0 :List(Amount); }
}

struct GroupState {
  spec @0 :GroupSpec;
  job @1 :Data;
  placed @2 :Bool;
  pendingReason @3 :Text;
  nodes @4 :List(Data);
}

struct NodeInfo {
  node @0 :Data;
  address @1 :Text;
  hostname @2 :Text;
  pid @3 :Int32;
  isHead @4 :Bool;
  resources @5 :List(Amount);
  available @6 :List(Amount);
  labels @7 :List(Pair);
  alive @8 :Bool = true;
}

struct JobInfo {
  job @0 :Data;
  node @1 :Data;
  command @2 :Text;
  pid @3 :Int32;
  running @4 :Bool = true;
}

struct ClusterState {
  cluster @0 :Data;
  nodes @1 :List(NodeInfo);
  actors @2 :List(ActorState);
  groups @3 :List(GroupState);
  jobs @4 :List(JobInfo);
}

struct LogLines {
  job @0 :Data;
  worker @1 :Data;
  node @2 :Data;
  className @3 :Text;
  pid @4 :Int32;
  isStderr @5 :Bool;
  lines @6 :List(Text);
}

struct ControlRequest {
  job @0 :Data;              # on whose behalf; a node fills it in for its clients
  deadlineMs @1 :UInt64;     # time left; never 0
  union {
    heartbeat @2 :Void;
    # From drivers, workers and the command line; the node answers or passes on to the head.
    registerDriver :group { info @3 :DriverInfo; }
    createActor :group { spec @4 :ActorSpec; }
    resolveActor :group { actor @5 :Data; name @6 :Text; nameSpace @43 :Text; }
    queryActor :group { actor @7 :Data; incarnation @44 :UInt64; }
    killActor :group { actor @8 :Data; mayRestart @45 :Bool; }
    kvPut :group { key @9 :Text; value @10 :Data; }
    kvGet :group { key @11 :Text; wait @12 :Bool; }
    kvAdd :group { key @13 :Text; amount @14 :Int64; }
    kvDelete :group { key @15 :Text; }
    queryCluster @16 :Void;
    createGroup :group { spec @17 :GroupSpec; }
    removeGroup :group { group @18 :Data; }
    submitJob :group { argv @19 :List(Text); workingDir @20 :Text; env @21 :List(Pair); }
    cancelJob :group { job @22 :Data; }
    readLog :group { name @23 :Text; offset @24 :UInt64; }
    stopNode @25 :Void;
    # From a node to the head.
    registerNode :group { info @26 :NodeInfo; returns @63 :Bool; actors @64 :List(ActorInstance); jobs @65 :List(Data); replaces @66 :Data; }
    startJob :group { info @27 :JobInfo; driver @28 :DriverInfo; }
    endJob :group { job @29 :Data; }                # also from the head to the nodes
    actorExited :group { actor @30 :Data; incarnation @31 :UInt64; cause @32 :DeathCause; }
    # From the head to a node.
    startActor :group { spec @33 :ActorSpec; incarnation @34 :UInt64; driver @35 :DriverInfo; driverNode @36 :Text; }
    stopActor :group { actor @37 :Data; incarnation @38 :UInt64; graceMs @46 :UInt64; drain @47 :Bool; reason @48 :Text; }
    # From a node to a worker.
    buildActor :group { spec @39 :ActorSpec; incarnation @40 :UInt64; }
    # From a node to the driver's node.
    fetchFile :group { hash @41 :Text; offset @42 :UInt64; }
    # From drivers and workers, for the head.
    terminateActor :group { actor @49 :Data; restart @58 :Bool; }
    watchActor :group { actor @50 :Data; version @51 :UInt64; }
    watchNodes :group { version @52 :UInt64; }
    saveState :group { actor @53 :Data; incarnation @54 :UInt64; state @55 :Data; }
    # From a node to a worker.
    drainActor :group { actor @56 :Data; incarnation @57 :UInt64; }
    # From a node to the head: the end of a process of shared actors.
    actorsExited :group { actors @59 :List(ActorInstance); cause @60 :DeathCause; }
    # From drivers and workers, for the head.
    parkActor :group { actor @61 :Data; }           # it goes on without its resources
    # About objects, to and from several.
    objects @62 :Published.ObjectControl;
    # To see what the cluster does, to nodes and to the head.
    observe @67 :Observe.ObserveRequest;
  }
}

struct ControlReply {
  code @0 :UInt16;           # ErrorCode; 0: success
  message @1 :Text;
  union {
    none @2 :Void;
    job @3 :Data;
    address @4 :ActorAddress;
    actor @5 :ActorState;
    bytes @6 :Data;
    number @7 :Int64;
    cluster @8 :ClusterState;
    group @9 :GroupState;
    log :group { text @10 :Data; nextOffset @11 :UInt64; }
    nodes :group { version @12 :UInt64; nodes @13 :List(NodeInfo); }
    objects @14 :Published.ObjectControlReply;
    observe @15 :Observe.ObserveReply;
    actorPage :group { actors @16 :List(ActorState); next @17 :Data; }  # next: ask for what comes after; empty: that was all
  }
}

struct ControlEvent {        # one way
  union {
    logLines @0 :LogLines;
    jobOutput :group { job @1 :Data; isStderr @2 :Bool; bytes @3 :Data; }
    jobExited :group { job @4 :Data; cause @5 :DeathCause; }
    obsoleteActorDied @6 :ActorState;
    shutdown :group { code @7 :UInt16; message @8 :Text; }
    actorsDied :group { job @9 :Data; actors @10 :List(Data); }  # for good
  }
}
