# Objects in shared memory: what a process asks of its node's store, and one node's store of another's.
# Field numbers, types and defaults never change; fields are only appended.
@0xd7a4e1b35c90f268;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("runtime::schema");

struct ObjectLocation {  # where a sealed object lies; travels inside of references
  objectId @0 :Data;     # 16 bytes
  nodeId @1 :Data;       # 16 bytes
  endpoint @2 :Text;     # the node's, "HOST:PORT"
  segment @3 :UInt32;
  extent @4 :UInt64;     # never reused by a store, so that a stale location is noticed
  offset @5 :UInt64;     # of the first data byte in the segment
  size @6 :UInt64;       # data bytes
}

struct Extent {          # a range of a segment, leased to one process
  extent @0 :UInt64;
  segment @1 :UInt32;
  offset @2 :UInt64;
  size @3 :UInt64;
  home @4 :UInt64;       # its offset when it was leased: locations of objects in it are relative to that
}

struct ObjectRequest {
  union {
    open @0 :Void;              # reply: store, with the segment's descriptor
    lease @1 :UInt64;           # bytes; reply: extent
    giveBack @2 :List(UInt64);  # one way: extents that the sender leased and has emptied
    pin @3 :UInt64;             # keep this extent while I read; reply: extent
    unpin @4 :List(UInt64);     # one way: an extent is named once for each pin given up
    fetch @5 :ObjectLocation;   # bring it here and pin it; reply: location
    read :group {               # from another node; reply: data, with the bytes as payload
      location @6 :ObjectLocation;
      from @7 :UInt64;
      length @8 :UInt64;
    }
    surrender @9 :UInt64;       # from the store to a process: name extents of about this many bytes that may move to disk; reply: extents
    keep @10 :List(ObjectLocation);     # I borrow these, from any lender; the store tells their owners. reply, if one is asked for: done
    release @11 :List(ObjectLocation);  # one way: I borrow them no more; named once for each keep
    hold @12 :List(ObjectLocation);     # one way, from the store to the owner: a process of the cluster borrows these
    unhold @13 :List(ObjectLocation);   # one way, from the store to the owner: no process that was reported by hold borrows these any more
    report @14 :Void;                   # from the store to a process: what do you hold? reply: report
    source :group {                     # from a node that is about to copy an object: whom shall I copy from? reply: source
      location @15 :ObjectLocation;
      endpoint @16 :Text;               # the asker's
      failed @17 :Text;                 # the one named before, which did not do; empty: none
    }
    ended @18 :List(Data);              # one way, from the node that had these objects to one that copied them: ids; the copies can go
    remake :group {                     # an object is lost; to the keeper's node by way of the own one, and there to every process. reply: location
      location @19 :ObjectLocation;     # where it was
      keeper @20 :Text;                 # Value.keeper
    }
    takeOver @21 :ObjectLocation;       # to the own node, as the object's node is about to leave: keep it here. reply: location, which the asker borrows
    evacuate @22 :Data;                 # from the store to a process: take over what you refer to that lies on this node. reply: failed
  }
  waitMs @23 :UInt64;           # of lease, pin, fetch: how long to wait in line for room. 0: not at all
}

struct ObjectReply {
  code @0 :UInt16;            # runtime::ErrorCode; 0: ok
  message @1 :Text;
  union {
    done @2 :Void;
    store :group {
      nodeId @3 :Data;
      endpoint @4 :Text;
      segment @5 :UInt32;
      segmentBytes @6 :UInt64;
      slabBytes @7 :UInt64;
    }
    extent @8 :Extent;
    location @9 :ObjectLocation;
    data @10 :Void;
    extents @11 :List(UInt64);
    report @12 :ProcessReport;
    source @13 :Text;           # the endpoint of a node that has it, or is about to
    failed @14 :UInt64;         # how many objects could not be taken over
  }
}

struct ProcessReport {          # what a process holds of objects, for people who look for what keeps them
  objects @0 :List(ProcessObject);
  inlineObjects @1 :UInt64;     # small values that lie in the process itself
}

struct ProcessObject {
  location @0 :ObjectLocation;
  owned @1 :Bool;               # else borrowed
  handles @2 :UInt32;           # values in the process that refer to it
  lent @3 :UInt32;              # owned: calls whose arguments refer to it and whose callee has not let go
  inFlight @4 :UInt32;          # of these, calls without a reply yet
  held @5 :UInt32;              # owned: for borrowers that the store reported
  ageMs @6 :UInt64;
}
