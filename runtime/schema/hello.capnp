# The first frame in each direction on an authenticated connection: who speaks, and which protocols it knows.
# Field numbers, types and defaults never change; fields are only appended.
@0xc2b1f0a97d3e5846;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("runtime::schema");

struct Hello {
  protocolMin @0 :UInt32;
  protocolMax @1 :UInt32;
  version @2 :Text;        # release of the software, for messages only
  role @3 :UInt16;         # runtime::Role
  clusterId @4 :Data;      # 16 bytes; empty: not known yet
  nodeId @5 :Data;         # 16 bytes; empty: none
  workerId @6 :Data;       # 16 bytes; empty: none
  incarnation @7 :UInt64;  # grows with every restart of the same node or worker
  pid @8 :Int64;
  refusal @9 :Text;        # not empty: the sender closes now, for this reason
  refusalCode @10 :UInt16; # runtime::ErrorCode of the refusal
}
