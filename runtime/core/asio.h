// The only header that includes Boost.Asio, so that it is configured in one place.
#pragma once

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "runtime/core/status.h"

namespace runtime {

namespace asio = boost::asio;

/// Translates a socket error: end of file and resets give kUnavailable, aborted operations
/// kCancelled.
Status from_asio(const boost::system::error_code& ec, std::string_view what);

}  // namespace runtime
