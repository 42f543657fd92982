// Certificates that tests make for themselves.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

namespace support {

/// Writes a self-signed certificate for an IPv4 address, valid for a day, and its key (0600), both
/// PEM.
inline void write_certificate(const std::filesystem::path& certificate,
                              const std::filesystem::path& key, const std::string& address) {
  const auto must = [](bool ok) {
    if (!ok) throw std::runtime_error("making a certificate failed");
  };
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pair(EVP_EC_gen("P-256"),
                                                                 &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), &X509_free);
  must(pair && made);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_set_version(made.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 24 * 3600);
  X509_set_pubkey(made.get(), pair.get());
  X509_NAME* name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(address.c_str()), -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  const std::string alternative = "IP:" + address;
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, alternative.c_str()),
      &X509_EXTENSION_free);
  must(extension != nullptr);
  X509_add_ext(made.get(), extension.get(), -1);
  must(X509_sign(made.get(), pair.get(), EVP_sha256()) > 0);
  const auto write = [&must](const std::filesystem::path& file, auto&& body) {
    const std::unique_ptr<FILE, decltype(&std::fclose)> out(std::fopen(file.c_str(), "w"),
                                                            &std::fclose);
    must(out && body(out.get()) == 1);
  };
  write(certificate, [&](FILE* out) { return PEM_write_X509(out, made.get()); });
  write(key, [&](FILE* out) {
    return PEM_write_PrivateKey(out, pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  std::filesystem::permissions(
      key, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

}  // namespace support
