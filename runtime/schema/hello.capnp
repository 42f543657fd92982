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
  # A connection that outlives its socket. The caller picks the session; a callee that takes part says the same number.
  session @11 :UInt64;     # random; 0: the connection ends with its socket
  resumes @12 :Bool;       # of the caller: there was a socket before; of the callee: the session is known here
  received @13 :UInt64;    # frames of the session that the sender of this has
}
