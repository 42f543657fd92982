@0x9c1f3ad07be254e1;
# What the cluster does with objects: publishes them under names and versions, and lists what there is of them. Carried by the control plane.
# Numbers, types and defaults never change; append, and retire by renaming to obsoleteX.

using Cxx = import "/capnp/c++.capnp";
using Object = import "/runtime/schema/object.capnp";
$Cxx.namespace("runtime::schema");

struct ObjectControl {
  union {
    # From drivers and workers to the head.
    publish :group {
      nameSpace @0 :Text;      # empty: the job's
      name @1 :Text;
      version @2 :UInt64;      # larger than the latest
      keepLast @3 :UInt32;     # versions that stay, this one included
      copies @4 :UInt32;       # nodes that keep the bytes
      value @5 :PublishedValue;
      type @6 :Text;          # of the value, as its program's compiler names it; empty: not said
    }
    findPublished :group {
      nameSpace @7 :Text;
      name @8 :Text;
      version @9 :UInt64;      # at least; 0: whichever is the latest
      exactly @10 :Bool;        # this one
      wait @11 :Bool;          # until the deadline for it to be published
    }
    unpublish :group {
      nameSpace @12 :Text;
      name @13 :Text;
      version @14 :UInt64;     # 0: all
    }
    listObjects @15 :Void;     # also from the head to the nodes
    # From the head to a node.
    adopt @16 :Object.ObjectLocation;  # keep it in the store's own name, or a copy of it; reply: location
    drop @17 :Object.ObjectLocation;   # what was adopted
    # From a node to the head, and from the head to the nodes: where is an object whose node has left? reply: location
    findObject :group { object @18 :Data; node @19 :Data; }
  }
}

struct PublishedValue {
  union {
    bytes @0 :Data;                    # small: the head keeps them
    copies @1 :List(Object.ObjectLocation);
  }
}

struct PublishedObject {
  name @0 :Text;
  version @1 :UInt64;
  value @2 :PublishedValue;
  type @3 :Text;               # as publish gave it
}

struct ObjectControlReply {
  union {
    published @0 :PublishedObject;
    location @1 :Object.ObjectLocation;
    list @2 :ObjectList;
  }
}

struct ObjectList {
  objects @0 :List(ObjectInfo);
  stores @1 :List(StoreInfo);
  truncated @2 :Bool;          # there are more
  troubles @3 :List(Text);     # nodes and processes that have not answered
}

struct ObjectInfo {
  objectId @0 :Data;
  node @1 :Data;               # that has the bytes
  size @2 :UInt64;
  place @3 :UInt16;            # ObjectPlace
  ownerNode @4 :Data;
  ownerPid @5 :Int32;
  owner @6 :Text;
  ageMs @7 :UInt64;
  handles @8 :UInt32;
  lent @9 :UInt32;
  inFlight @10 :UInt32;
  held @11 :UInt32;
  readers @12 :UInt32;
  borrowers @13 :List(Borrower);
  published @14 :List(Text);   # NAMESPACE/NAME@VERSION
  copies @15 :List(Data);      # nodes that have copies
  struct Borrower {
    node @0 :Data;
    pid @1 :Int32;
    handles @2 :UInt32;
    name @3 :Text;
  }
}

struct StoreInfo {
  node @0 :Data;
  capacityBytes @1 :UInt64;
  leasedBytes @2 :UInt64;
  orphanedBytes @3 :UInt64;
  replicaBytes @4 :UInt64;
  publishedBytes @5 :UInt64;
  spilledBytes @6 :UInt64;
  sentBytes @7 :UInt64;
  fetchedBytes @8 :UInt64;
  pins @9 :UInt64;
  borrows @10 :UInt64;
  inlineObjects @11 :UInt64;
}
