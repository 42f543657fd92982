#include "runtime/metrics/tls.h"

#include <openssl/ssl.h>
#include <sys/stat.h>

#include <boost/asio/ssl/impl/src.hpp>  // Asio's function bodies that need OpenSSL, once

#include "runtime/core/log.h"

namespace runtime {

namespace {

namespace fs = std::filesystem;
namespace ssl = boost::asio::ssl;

Status check_key_file(const fs::path& key) {
  struct stat info {};
  if (::stat(key.c_str(), &info) != 0) return errno_status(errno, key.string());
  if ((info.st_mode & 077) != 0)
    return invalid_argument(key.string() + ": other users can read this private key: chmod 600 it");
  return {};
}

Status explain_tls(const boost::system::error_code& error, const fs::path& file,
                   const std::string& what) {
  return error ? invalid_argument(file.string() + ": " + what + ": " + error.message()) : Status();
}

fs::file_time_type changed_at(const TlsFiles& files) {
  std::error_code missing;
  return std::max(fs::last_write_time(files.certificate, missing),
                  fs::last_write_time(files.key, missing));
}

}  // namespace

Result<std::shared_ptr<ssl::context>> load_tls(const TlsFiles& files) {
  std::error_code missing;
  for (const fs::path& file : {files.certificate, files.key}) {
    if (!fs::exists(file, missing)) return not_found(file.string() + ": there is no such file");
  }
  if (Status status = check_key_file(files.key); !status.ok()) return status;
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  boost::system::error_code error;
  context->set_options(
      ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 | ssl::context::no_compression, error);
  context->use_certificate_chain_file(files.certificate.string(), error);
  if (error) return explain_tls(error, files.certificate, "no certificate in PEM form");
  context->use_private_key_file(files.key.string(), ssl::context::pem, error);
  if (error) return explain_tls(error, files.key, "no private key of that certificate");
  if (::SSL_CTX_check_private_key(context->native_handle()) != 1)
    return invalid_argument(files.key.string() + ": the private key of another certificate than " +
                            files.certificate.string());
  return context;
}

std::shared_ptr<ssl::context> RenewedTls::current() {
  if (!files_.any()) return nullptr;
  const fs::file_time_type changed = changed_at(files_);
  if (changed == loaded_) return context_;  // also null: bad files are read, and reported, once
  loaded_ = changed;
  auto fresh = load_tls(files_);
  if (fresh.ok())
    context_ = *fresh;
  else
    LOG(warn, "HTTPS: {}", fresh.status().message());
  return context_;
}

}  // namespace runtime
