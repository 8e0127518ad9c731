#include "agent/metrics/http_server.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::metrics {
namespace {

constexpr std::int64_t kMaxFileBytes = 1 << 20;

std::int64_t nanoseconds(const timespec& time) {
  constexpr std::int64_t kPerSecond = 1'000'000'000;
  return std::int64_t{time.tv_sec} * kPerSecond + time.tv_nsec;
}

// OpenSSL's last error.
std::string openssl_reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason != nullptr ? printable(reason) : "unknown reason";
}

// Never prompts: a key with a password counts as unreadable.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) {
  return -1;
}

}  // namespace

void TlsIdentity::FreeContext::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

TlsIdentity::~TlsIdentity() = default;

Result<TlsIdentity::Stamp> TlsIdentity::stamp_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return fail(error_from_errno(errno, "reading " + printable(path)));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::data_corrupt, printable(path) + " is not a file");
  if (info.st_size > kMaxFileBytes) return fail(ErrorCode::data_corrupt, printable(path) + " is larger than 1 MiB");
  return Stamp{info.st_dev, info.st_ino, info.st_size, nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
}

Result<TlsIdentity::Stamps> TlsIdentity::stamps() const {
  Stamps both;
  TRY_ASSIGN(both.certificate, stamp_of(files_.certificate));
  TRY_ASSIGN(both.key, stamp_of(files_.key));
  return both;
}

Result<TlsIdentity::Context> TlsIdentity::read_pair() const {
  ERR_clear_error();
  Context context(SSL_CTX_new(TLS_server_method()));
  if (!context) return fail(ErrorCode::internal, "TLS: " + openssl_reason());
  SSL_CTX* const raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(raw, no_password);
  const auto wrong = [](const std::string& file, const char* what) {
    return fail(ErrorCode::data_corrupt, printable(file) + what + ": " + openssl_reason());
  };
  if (SSL_CTX_use_certificate_chain_file(raw, files_.certificate.c_str()) != 1) {
    return wrong(files_.certificate, " holds no PEM certificate");
  }
  if (SSL_CTX_use_PrivateKey_file(raw, files_.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return wrong(files_.key, " holds no unencrypted PEM key for the certificate");
  }
  if (SSL_CTX_check_private_key(raw) != 1) return wrong(files_.key, " is not the key of the certificate");
  return context;
}

Result<std::unique_ptr<TlsIdentity>> TlsIdentity::load(TlsFiles files) {
  std::unique_ptr<TlsIdentity> identity(new TlsIdentity(std::move(files)));
  TRY_ASSIGN(identity->loaded_, identity->stamps());
  TRY_ASSIGN(identity->context_, identity->read_pair());
  return identity;
}

// A pair that changes while it is read does not match, or has other stamps at the next check.
void TlsIdentity::reload_if_changed() {
  const Result<Stamps> now = stamps();
  if (now && *now == loaded_) {
    last_problem_.clear();
    return;
  }
  Result<Context> read = now ? read_pair() : fail(now.error());
  const std::string problem = read ? "" : read.error().message;
  if (read) {
    context_ = *std::move(read);
    loaded_ = *now;
  }
  if (files_.on_change && (problem.empty() || problem != last_problem_)) files_.on_change(problem);
  last_problem_ = problem;
}

ssl_st* TlsIdentity::new_session(SteadyTime now) {
  if (now - checked_at_ >= kCheckInterval) {
    checked_at_ = now;
    reload_if_changed();
  }
  return SSL_new(context_.get());
}

}  // namespace neuron::metrics
