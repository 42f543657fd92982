@0x8aee6e339ed706a5;
# The cluster's control plane. Drivers, workers and the command line ask their node, nodes ask the head, the head asks
# nodes, and nodes ask workers. One request type for all of them: each side refuses what it does not serve. Numbers, types
# and defaults never change; append, and retire by renaming to obsoleteX.

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
  nodeIsPreferred @24 :Bool; # another node will do when that one has no room
  scheduling @25 :UInt16;    # ActorScheduling
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
  gpus @16 :List(UInt32);    # of its node, that are its own
  moves @17 :UInt32;         # of the restarts those because its node was drained
}

struct GroupSpec {
  group @0 :Data;
  name @1 :Text;
  strategy @2 :UInt16;       # GroupStrategy
  bundles @3 :List(Bundle);
  struct Bundle { resources @0 :List(Amount); labels @1 :List(Pair); }
  nameSpace @4 :Text;        # empty in a request: the job's
  detached @5 :Bool;         # outlives its job
}

struct GroupState {
  spec @0 :GroupSpec;
  job @1 :Data;
  placed @2 :Bool;
  pendingReason @3 :Text;
  nodes @4 :List(Data);
  gpus @5 :List(List(UInt32));  # of each bundle: those of its node that are its own
  placements @6 :UInt32;     # how often it was placed
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
  joinedAs @9 :UInt64;       # the version of the cluster's nodes with which it joined
  drain @10 :NodeDrain;      # null: it is not drained
}

struct NodeDrain {           # a node is about to leave
  reason @0 :Text;
  leftMs @1 :UInt64;         # until it leaves, when this was said
  deadlineMs @2 :UInt64;     # the same since the Unix epoch, by the head's clock
  version @3 :UInt64;        # of the cluster's nodes when it began
  waitsFor @4 :Text;         # what keeps it, for people
}

struct TokenState {          # the cluster's token
  token @0 :Data;
  version @1 :UInt64;        # how often it was changed
  earlier @2 :List(EarlierToken);
}

struct EarlierToken {        # still counts, but not for long
  token @0 :Data;
  leftMs @1 :UInt64;         # when this was said
  untilMs @2 :UInt64;        # the same since the Unix epoch, by the head's clock
}

struct NodeDeparture {       # a node that is in the cluster no more
  node @0 :NodeInfo;
  why @1 :Text;
  drained @2 :Bool;          # it had been told to leave
  version @3 :UInt64;        # of the cluster's nodes when it went
}

struct JobInfo {
  job @0 :Data;
  node @1 :Data;
  command @2 :Text;
  pid @3 :Int32;
  running @4 :Bool = true;   # or about to
  submitted @5 :Bool;
  user @6 :Text;
  startedMs @7 :UInt64;      # Unix time
  endedMs @8 :UInt64;
  outcome @9 :UInt16;        # JobOutcome
  end @10 :DeathCause;
  place @11 :Data;           # a placement group
}

struct JobFile {
  path @0 :Text;             # within the job's folder
  kind @1 :UInt16;           # JobFile::Kind
  executable @2 :Bool;
  bytes @3 :UInt64;
  hash @4 :Text;             # of a file: BLAKE2b-256 in hex
  target @5 :Text;           # of a link
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

# What waits for a place, and what the nodes are used for.
struct Demand {
  actors @0 :List(Place);
  jobs @1 :List(Place);
  groups @2 :List(Group);
  unlisted @3 :UInt64;       # what waits beyond the lists
  bound @4 :UInt64;          # actors that no new node would help
  nodes @5 :List(Node);

  struct Place {             # things that wait for one node each, all alike
    resources @0 :List(Amount);
    labels @1 :List(Pair);
    count @2 :UInt64;
    example @3 :Text;
  }
  struct Group {             # placement groups that wait, all alike
    spec @0 :GroupSpec;
    count @1 :UInt64;
  }
  struct Node {
    info @0 :NodeInfo;
    actors @1 :UInt64;
    bundles @2 :UInt64;
    jobs @3 :UInt64;
    soleCopies @4 :UInt64;
    lastPlaced @5 :UInt64;   # incarnation of the actor that was placed there last
  }
}

struct ControlRequest {
  job @0 :Data;              # on whose behalf; a node fills it in for its clients
  deadlineMs @1 :UInt64;     # time left; never 0
  union {
    heartbeat @2 :Void;
    # From drivers, workers and the command line; the node answers or passes on to the head.
    registerDriver :group { info @3 :DriverInfo; }
    createActor :group { spec @4 :ActorSpec; }
    resolveActor :group { actor @5 :Data; name @6 :Text; nameSpace @7 :Text; }
    queryActor :group { actor @8 :Data; incarnation @9 :UInt64; }
    killActor :group { actor @10 :Data; mayRestart @11 :Bool; }
    kvPut :group { key @12 :Text; value @13 :Data; }
    kvGet :group { key @14 :Text; wait @15 :Bool; }
    kvAdd :group { key @16 :Text; amount @17 :Int64; }
    kvDelete :group { key @18 :Text; }
    queryCluster @19 :Void;
    createGroup :group { spec @20 :GroupSpec; }
    removeGroup :group { group @21 :Data; }
    submitJob :group { argv @22 :List(Text); workingDir @23 :Text; env @24 :List(Pair); detached @25 :Bool; files @26 :List(JobFile); program @27 :JobFile; job @102 :Data; place @103 :Data; }
    cancelJob :group { job @28 :Data; }
    readLog :group { name @29 :Text; offset @30 :UInt64; file @31 :UInt64; }
    stopNode @32 :Void;
    # From a node to the head.
    registerNode :group { info @33 :NodeInfo; returns @34 :Bool; actors @35 :List(ActorInstance); jobs @36 :List(Data); replaces @37 :Data; }
    startJob :group { info @38 :JobInfo; driver @39 :DriverInfo; }
    endJob :group { job @40 :Data; outcome @41 :UInt16; cause @42 :DeathCause; endedMs @43 :UInt64; goesOn @44 :Bool; filesNeeded @45 :Bool; }  # also from the head to the nodes
    actorExited :group { actor @46 :Data; incarnation @47 :UInt64; cause @48 :DeathCause; }
    # From the head to a node.
    startActor :group { spec @49 :ActorSpec; incarnation @50 :UInt64; driver @51 :DriverInfo; driverNode @52 :Text; gpus @53 :List(UInt32); }
    stopActor :group { actor @54 :Data; incarnation @55 :UInt64; graceMs @56 :UInt64; drain @57 :Bool; reason @58 :Text; }
    # From a node to a worker.
    buildActor :group { spec @59 :ActorSpec; incarnation @60 :UInt64; }
    # From a node to the driver's node.
    fetchFile :group { hash @61 :Text; offset @62 :UInt64; }
    # From drivers and workers, for the head.
    terminateActor :group { actor @63 :Data; restart @64 :Bool; }
    watchActor :group { actor @65 :Data; version @66 :UInt64; }
    watchNodes :group { version @67 :UInt64; }
    saveState :group { actor @68 :Data; incarnation @69 :UInt64; state @70 :Data; }
    # From a node to a worker.
    drainActor :group { actor @71 :Data; incarnation @72 :UInt64; }
    # From a node to the head: the end of a process of shared actors.
    actorsExited :group { actors @73 :List(ActorInstance); cause @74 :DeathCause; }
    # From drivers and workers, for the head.
    parkActor :group { actor @75 :Data; }           # it goes on without its resources
    # About objects, to and from several.
    objects @76 :Published.ObjectControl;
    # From drivers and workers, for the head: by id, or by name when the id is empty.
    queryGroup :group { group @77 :Data; name @78 :Text; nameSpace @79 :Text; wait @80 :Bool; }
    # From the head to a node: what of it belongs to placement groups.
    reserve :group { reset @81 :Bool; prepare @82 :List(Holding); commit @83 :List(Data); release @84 :List(Data); }
    # From the command line, about jobs.
    queryJob :group { job @85 :Data; }
    offerFiles :group { bytes @86 :UInt64; count @87 :UInt64; hashes @88 :List(Text); }
    storeFile :group { hash @89 :Text; bytes @90 :UInt64; offset @91 :UInt64; data @92 :Data; }
    # From a driver.
    driverDone :group { exitCode @93 :Int32; }
    # To the head: a node is to leave within that time.
    drainNode :group { node @94 :Data; timeMs @95 :UInt64; reason @96 :Text; ifIdle @97 :Bool; }
    # From the head to a node.
    takeOver :group { node @98 :Data; }             # hold what your processes refer to of that node's objects; reply: number
    leave :group { reason @99 :Text; }              # you are drained
    # From an autoscaler, for the head.
    queryDemand @100 :Void;
    # To see what the cluster does, to nodes and to the head.
    observe @101 :Observe.ObserveRequest;
    # From the command line: a job that waits for a place.
    queueJob :group { job @104 :Data; place @105 :Data; argv @106 :List(Text); resources @107 :List(Amount); labels @108 :List(Pair); }
    # To the head: another token for the cluster; the present one counts for graceMs still.
    changeToken :group { token @110 :Data; graceMs @111 :UInt64; }
    # From the head to the node that hosts it: write down that this token may be the next.
    expectToken :group { token @112 :Data; }
    # From drivers and workers to the head, from there to the actor's node, and to the process that builds the actor.
    constructorAwaited :group { actor @113 :Data; name @114 :Text; nameSpace @115 :Text; notice @116 :Data; }  # by id; where there is no such actor, by name. notice: a CallNotice (call.capnp), opaque to nodes and head
  }
  id @109 :Data;             # of a request that must not run twice: the same on each repetition; empty: it has none
}

# What a placement group takes of one node.
struct Holding { group @0 :Data; resources @1 :List(Amount); }
struct Refusal { group @0 :Data; reason @1 :Text; }

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
    log :group { text @10 :Data; nextOffset @11 :UInt64; file @12 :UInt64; position @24 :UInt64; }  # position: of the text in all that was ever written; 0: not known
    nodes :group { version @13 :UInt64; nodes @14 :List(NodeInfo); departed @15 :List(NodeDeparture); }
    objects @16 :Published.ObjectControlReply;
    refusals @17 :List(Refusal);
    jobInfo @18 :JobInfo;
    filesWanted @19 :List(UInt32);
    demand @20 :Demand;
    observe @21 :Observe.ObserveReply;
    actorPage :group { actors @22 :List(ActorState); next @23 :Data; }  # next: ask for what comes after; empty: that was all
  }
}

struct ControlEvent {        # one way
  union {
    logLines @0 :LogLines;
    jobOutput :group { job @1 :Data; isStderr @2 :Bool; bytes @3 :Data; }
    jobExited :group { job @4 :Data; cause @5 :DeathCause; }
    obsoleteActorDied @6 :ActorState;
    shutdown :group { code @7 :UInt16; message @8 :Text; left @13 :Text; }
    actorsDied :group { job @9 :Data; actors @10 :List(Data); }  # for good
    nodeDrains :group { node @11 :Data; drain @12 :NodeDrain; }   # to all nodes, and from each to its processes
    tokenChanged @14 :TokenState;                                 # the same
  }
}
