// The certificate that a node shows to HTTPS clients.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "runtime/core/result.h"
#include "runtime/observe/metrics_source.h"

namespace runtime {

/// Reads certificate (with its chain) and private key, PEM both. TLS 1.2 and later.
/// Errors: kInvalidArgument and kNotFound naming the file: not there, not PEM, a key that other
/// users can read, a key of another certificate.
Result<std::shared_ptr<boost::asio::ssl::context>> load_tls(const TlsFiles& files);

/// A context of files that may be replaced while the node runs, as certificates are.
class RenewedTls {
 public:
  explicit RenewedTls(TlsFiles files) : files_(std::move(files)) { (void)current(); }

  /// Null: there are no files, or they were never good. Of files that went bad, the last good one.
  std::shared_ptr<boost::asio::ssl::context> current();

 private:
  const TlsFiles files_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::filesystem::file_time_type loaded_{};
};

}  // namespace runtime
