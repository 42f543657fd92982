// The parts of the handshake that are plain data: preamble, attach frame, Hello.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/core/version.h"
#include "runtime/schema/hello.capnp.h"
#include "runtime/transport/capnp_codec.h"
#include "runtime/transport/handshake.h"

namespace runtime {

namespace {

constexpr char kHelloMagic[8] = {'S', 'T', 'A', 'R', 'L', 'I', 'N', 'G'};
constexpr std::size_t kVersionTextMax = 64;

}  // namespace

// Layout, with bytes: magic (8), version (2), flags (2), zero (4), target worker (16). Then digests
// of the address that was dialled and of the one that was reached (16 each), and the key (16).
std::array<std::byte, Preamble::kBytes> Preamble::encode() const {
  std::array<std::byte, kBytes> raw{};
  std::memcpy(raw.data(), kHelloMagic, sizeof kHelloMagic);
  std::memcpy(raw.data() + 8, &version, sizeof version);
  std::memcpy(raw.data() + 10, &flags, sizeof flags);
  std::memcpy(raw.data() + 16, target.bytes.data(), target.bytes.size());
  std::memcpy(raw.data() + 32, dialled.bytes.data(), dialled.bytes.size());
  std::memcpy(raw.data() + 48, reached.bytes.data(), reached.bytes.size());
  std::memcpy(raw.data() + 64, key.bytes.data(), key.bytes.size());
  return raw;
}

Result<std::uint16_t> Preamble::version_of(std::span<const std::byte> received) {
  if (received.size() < kCommonBytes ||
      std::memcmp(received.data(), kHelloMagic, sizeof kHelloMagic) != 0) {
    return invalid_argument("the peer does not speak Starling's protocol");
  }
  std::uint16_t version = 0;
  std::memcpy(&version, received.data() + 8, sizeof version);
  return version;
}

Result<Preamble> Preamble::decode(std::span<const std::byte> raw) {
  const auto stated = version_of(raw);
  if (!stated.ok()) return stated.status();
  Preamble preamble;
  preamble.version = *stated;
  std::memcpy(&preamble.flags, raw.data() + 10, sizeof preamble.flags);
  std::memcpy(preamble.target.bytes.data(), raw.data() + 16, preamble.target.bytes.size());
  if (preamble.version != kWireVersion) return preamble;
  std::uint32_t reserved = 0;
  std::memcpy(&reserved, raw.data() + 12, sizeof reserved);
  if (raw.size() != kBytes || reserved != 0) return invalid_argument("a malformed preamble");
  std::memcpy(preamble.dialled.bytes.data(), raw.data() + 32, preamble.dialled.bytes.size());
  std::memcpy(preamble.reached.bytes.data(), raw.data() + 48, preamble.reached.bytes.size());
  std::memcpy(preamble.key.bytes.data(), raw.data() + 64, preamble.key.bytes.size());
  return preamble;
}

Message encode_attach(const Inbound& inbound, FileDescriptor socket) {
  Message message;
  message.kind = FrameKind::kAttach;
  std::array<std::byte, Preamble::kBytes + 1> payload;
  const auto preamble = inbound.preamble.encode();
  std::copy(preamble.begin(), preamble.end(), payload.begin());
  payload.back() = std::byte{inbound.plain};
  message.payload = Buffer::copy_of(payload);
  message.fds.push_back(std::move(socket));
  return message;
}

Result<Inbound> decode_attach(Message& message, FileDescriptor* socket) {
  const std::span payload = message.payload.first().bytes();
  if (message.kind != FrameKind::kAttach || message.fds.size() != 1 ||
      payload.size() != Preamble::kBytes + 1) {
    return invalid_argument("malformed attach frame: expected one descriptor and a preamble");
  }
  auto preamble = Preamble::decode(payload.first(Preamble::kBytes));
  if (!preamble.ok()) return preamble.status();
  *socket = std::move(message.fds.front());
  return Inbound{*preamble, payload.back() != std::byte{0}};
}

Hello Hello::of(const Credentials& credentials) {
  Hello hello;
  hello.version = kRelease;
  hello.role = credentials.role;
  hello.cluster = credentials.cluster;
  hello.node = credentials.node;
  hello.worker = credentials.worker;
  hello.incarnation = credentials.incarnation;
  hello.pid = ::getpid();
  return hello;
}

Buffer Hello::encode() const {
  return runtime::encode<schema::Hello>([this](schema::Hello::Builder out) {
    out.setProtocolMin(protocol_min);
    out.setProtocolMax(protocol_max);
    out.setVersion(to_text(version));
    out.setRole(static_cast<std::uint16_t>(role));
    out.setClusterId(to_data(cluster));
    out.setNodeId(to_data(node));
    out.setWorkerId(to_data(worker));
    out.setIncarnation(incarnation);
    out.setPid(pid);
    out.setSession(terms.session);
    out.setResumes(terms.resumes);
    out.setReceived(terms.received);
    if (refusal.ok()) return;
    out.setRefusal(to_text(refusal.message()));
    out.setRefusalCode(static_cast<std::uint16_t>(refusal.code()));
  });
}

Result<Hello> Hello::decode(const Buffer& meta) {
  Hello hello;
  Status status =
      runtime::decode<schema::Hello>(meta, "hello", [&hello](schema::Hello::Reader in) -> Status {
        auto cluster = to_id<ClusterId>(in.getClusterId());
        auto node = to_id<NodeId>(in.getNodeId());
        auto worker = to_id<WorkerId>(in.getWorkerId());
        for (const Status& id : {cluster.status(), node.status(), worker.status()}) {
          if (!id.ok()) return id.with_context("malformed hello");
        }
        if (in.getRole() < static_cast<std::uint16_t>(Role::kNode) ||
            in.getRole() > static_cast<std::uint16_t>(Role::kTool)) {
          return invalid_argument("malformed hello: unknown role " + std::to_string(in.getRole()));
        }
        if (in.getProtocolMin() > in.getProtocolMax())
          return invalid_argument("malformed hello: empty protocol range");
        hello.protocol_min = in.getProtocolMin();
        hello.protocol_max = in.getProtocolMax();
        hello.version = to_string(in.getVersion()).substr(0, kVersionTextMax);
        hello.role = static_cast<Role>(in.getRole());
        hello.cluster = *cluster;
        hello.node = *node;
        hello.worker = *worker;
        hello.incarnation = in.getIncarnation();
        hello.pid = in.getPid();
        hello.terms = {in.getSession(), in.getResumes(), in.getReceived()};
        if (in.getRefusal().size() > 0) {
          ErrorCode code = error_code_from_wire(in.getRefusalCode());
          hello.refusal = Status(code == ErrorCode::kOk ? ErrorCode::kInternal : code,
                                 to_string(in.getRefusal()));
        }
        return {};
      });
  if (!status.ok()) return status;
  return hello;
}

}  // namespace runtime
