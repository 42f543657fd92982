@0xd4a1f06be93c7258;
# What the head's journal holds: an entry for each thing that the head knows. Written by one version and read by later ones, for years.
# Numbers, types and defaults never change; append, and retire by renaming to obsoleteX.

using Cxx = import "/capnp/c++.capnp";
using Membership = import "/runtime/schema/membership.capnp";
using Published = import "/runtime/schema/published.capnp";
$Cxx.namespace("runtime::schema");

struct JournalEntry {
  union {
    counters :group {
      incarnation @0 :UInt64;      # of the actor that was placed last
      nodesVersion @1 :UInt64;
      order @2 :UInt64;            # of the last end that was recorded
    }
    node @3 :Membership.NodeInfo;
    job :group {
      info @4 :Membership.JobInfo;
      driver @5 :Membership.DriverInfo;
      endedAs @6 :UInt64;          # order of its end; 0: it runs
    }
    # What an actor is: written once, and again when it dies.
    actorSpec :group {
      job @7 :Data;
      spec @8 :Membership.ActorSpec;  # without its saved state
    }
    # How it is.
    actor @9 :ActorRow;
    # What its next incarnation begins with.
    actorState :group {
      actor @10 :Data;
      state @11 :Data;
    }
    group @12 :Membership.GroupState;
    pair :group {
      job @13 :Data;
      key @14 :Text;
      value @15 :Data;
    }
    published :group {
      nameSpace @16 :Text;
      name @17 :Text;
      version @18 :UInt64;
      value @19 :Published.PublishedValue;
      loss @20 :Text;              # not empty: why no copy is left
      type @21 :Text;              # of the value, as Publish gave it
    }
    obsoleteCluster :group {
      id @22 :Data;
      token @23 :Text;
      epoch @24 :UInt64;
    }
    departure @25 :Membership.NodeDeparture;  # one of the last nodes that went
    # One of the last requests that must not run twice.
    request :group {
      id @26 :Data;
      order @27 :UInt64;           # in which they were recorded
      atMs @28 :UInt64;            # Unix time
      about @29 :UInt64;           # the incarnation that it is about
      isAnswered @30 :Bool;
      reply @31 :Data;             # a ControlReply
    }
    token @32 :Membership.TokenState;  # once it was changed
  }
}

struct ActorRow {
  actor @0 :Data;
  phase @1 :UInt16;                # ActorPhase
  node @2 :Data;
  incarnation @3 :UInt64;
  restarts @4 :UInt32;
  ending @5 :Bool;                 # it was told to end: no restart
  version @6 :UInt64;
  address @7 :Membership.ActorAddress;
  death @8 :Membership.DeathCause; # of the last incarnation that ended
  diedAs @9 :UInt64;               # order of its death; 0: it lives
  gpus @10 :List(UInt32);          # of its node, by number, while it is there
  moving @11 :Bool;                # it was told to end because its node is drained, and starts elsewhere
  moves @12 :UInt32;               # of the restarts those because its node was drained
}
