#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "test/fakes/tcp_client.h"

namespace neuron::fakes {

// A certificate for `name` that its own key signs, and the key, as PEM files. For tests: what cannot be done ends the
// program.
inline void write_certificate(const std::string& name, const std::string& certificate, const std::string& key) {
  const auto require = [](bool holds) {
    if (!holds) std::abort();
  };
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> pair(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> made(X509_new(), X509_free);
  require(pair && made);
  constexpr long kValid = 3600;
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -kValid);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), kValid);
  X509_set_pubkey(made.get(), pair.get());
  X509_NAME* const subject = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(made.get(), subject);
  require(X509_sign(made.get(), pair.get(), EVP_sha256()) != 0);
  const auto open = [](const std::string& path) {
    return std::unique_ptr<std::FILE, int (*)(std::FILE*)>(std::fopen(path.c_str(), "w"), std::fclose);
  };
  const auto to_certificate = open(certificate);
  const auto to_key = open(key);
  require(to_certificate && to_key && PEM_write_X509(to_certificate.get(), made.get()) == 1 &&
          PEM_write_PrivateKey(to_key.get(), pair.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
}

// One connection over TLS to 127.0.0.1, which believes any certificate.
class TlsClient {
 public:
  // `newest`: of TLS, 0 for the library's.
  explicit TlsClient(std::uint16_t port, int newest = 0) : tcp_(port) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    if (newest != 0) {
      SSL_CTX_set_min_proto_version(context_.get(), 0);
      SSL_CTX_set_max_proto_version(context_.get(), newest);
      SSL_CTX_set_security_level(context_.get(), 0);
    }
    session_.reset(SSL_new(context_.get()));
    if (!tcp_.connected()) return;
    SSL_set_fd(session_.get(), tcp_.descriptor());
    connected_ = SSL_connect(session_.get()) == 1;
  }

  [[nodiscard]] bool connected() const { return connected_; }  // the handshake is over
  [[nodiscard]] int version() const { return SSL_version(session_.get()); }
  // The common name in the server's certificate; "" = it has shown none.
  [[nodiscard]] std::string server() const {
    const std::unique_ptr<X509, void (*)(X509*)> shown(SSL_get1_peer_certificate(session_.get()), X509_free);
    char name[256] = "";
    if (shown) X509_NAME_get_text_by_NID(X509_get_subject_name(shown.get()), NID_commonName, name, sizeof(name));
    return name;
  }
  // All that comes until the server closes.
  [[nodiscard]] std::string exchange(std::string_view request) {
    std::string all;
    if (!connected_ || SSL_write(session_.get(), request.data(), static_cast<int>(request.size())) <= 0) return all;
    char buffer[4096];
    for (int got = 0; (got = SSL_read(session_.get(), buffer, sizeof(buffer))) > 0;) {
      all.append(buffer, static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  TcpClient tcp_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_{nullptr, SSL_CTX_free};
  std::unique_ptr<SSL, void (*)(SSL*)> session_{nullptr, SSL_free};
  bool connected_ = false;
};

inline HttpReply https_get(std::uint16_t port, const std::string& path) {
  TlsClient client(port);
  const std::string all = client.exchange("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n");
  const std::size_t body = all.find("\r\n\r\n");
  if (!all.starts_with("HTTP/1.1 ") || body == std::string::npos) return {};
  return {std::stoi(all.substr(9, 3)), all.substr(body + 4)};
}

}  // namespace neuron::fakes
