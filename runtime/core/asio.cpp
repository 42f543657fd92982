#include "runtime/core/asio.h"

#include <boost/asio/impl/src.hpp>  // BOOST_ASIO_SEPARATE_COMPILATION: the bodies of what is no template

namespace runtime {

Status from_asio(const boost::system::error_code& ec, std::string_view what) {
  if (!ec) return {};
  if (ec == asio::error::operation_aborted) return cancelled(std::string(what) + ": cancelled");
  if (ec == asio::error::eof)
    return unavailable(std::string(what) + ": peer closed the connection");
  if (ec.category() == boost::system::system_category()) return errno_status(ec.value(), what);
  return unavailable(std::string(what) + ": " + ec.message());
}

}  // namespace runtime
