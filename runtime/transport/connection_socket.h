// ConnectionSocket: the connected socket, TCP or Unix, that handshake and channel use. Private to
// runtime/transport.
#pragma once

#include "runtime/core/asio.h"

namespace runtime {

using ConnectionSocket = asio::generic::stream_protocol::socket;

}  // namespace runtime
