#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace neuron::metrics {

// Paths of a server's certificate (with the chain to its issuer) and its key, as PEM. They may be links, as in a secret
// that the kubelet mounts, and may be replaced at any time.
struct TlsFiles {
  std::string certificate;
  std::string key;
  // Called on the server's thread after the files were reread: "" when the new pair is used, else why it cannot be,
  // once per reason; then the previous pair stays in use. Must not block. May be empty.
  std::function<void(const std::string& problem)> on_change{};
};

// Server certificate and key. TLS 1.2 and newer, without renegotiation, resumption or tickets, so that a client costs
// one handshake and leaves no state. One thread; rereads the two files when they have changed.
class TlsIdentity {
 public:
  static constexpr std::chrono::seconds kCheckInterval{1};

  // Errors: from errno, data_corrupt (no PEM, a key that is encrypted or not the certificate's), naming the file.
  [[nodiscard]] static Result<std::unique_ptr<TlsIdentity>> load(TlsFiles files);
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;

  // The server side of one connection, owned by the caller; nullptr: no memory. Checks the files first, at most every
  // kCheckInterval.
  [[nodiscard]] ssl_st* new_session(SteadyTime now);

 private:
  // Of the path's target: differs when the file was replaced.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  struct Stamps {
    Stamp certificate;
    Stamp key;
    friend bool operator==(const Stamps&, const Stamps&) = default;
  };
  struct FreeContext {
    void operator()(ssl_ctx_st* context) const;
  };
  using Context = std::unique_ptr<ssl_ctx_st, FreeContext>;

  explicit TlsIdentity(TlsFiles files) : files_(std::move(files)) {}
  [[nodiscard]] static Result<Stamp> stamp_of(const std::string& path);
  [[nodiscard]] Result<Stamps> stamps() const;
  [[nodiscard]] Result<Context> read_pair() const;
  void reload_if_changed();

  const TlsFiles files_;
  Context context_;
  Stamps loaded_;             // that context_ was read from
  SteadyTime checked_at_{};   // last
  std::string last_problem_;  // as passed to on_change
};

}  // namespace neuron::metrics
