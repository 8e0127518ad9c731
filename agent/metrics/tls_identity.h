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

// Where a server's certificate (with the chain that leads to its issuer) and its key are, as PEM. They may be links, as
// in a secret that the kubelet mounts, and may be replaced at any time.
struct TlsFiles {
  std::string certificate;
  std::string key;
  // Told, on the server's thread, when what the files hold was looked at again: "" when it is used now, else why it
  // cannot be, once per reason; then the pair from before goes on being used. Must not block. May be empty.
  std::function<void(const std::string& problem)> on_change{};
};

// Who a TLS server says it is. TLS 1.2 and newer, without renegotiation, resumption or tickets, so that a client costs
// what one handshake costs and nothing is kept of it. One thread; reads two files when they have changed.
class TlsIdentity {
 public:
  static constexpr std::chrono::seconds kLookEvery{1};

  // Errors: from errno, data_corrupt (no PEM, a key that is encrypted or not the certificate's), naming the file.
  [[nodiscard]] static Result<std::unique_ptr<TlsIdentity>> load(TlsFiles files);
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;

  // One server side of a connection, for whoever calls to free; nullptr: no memory. Looks at the files first, at most
  // every kLookEvery.
  [[nodiscard]] ssl_st* new_session(SteadyTime now);

 private:
  // Of what the path leads to: changes when another file takes the place.
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
  void look();

  const TlsFiles files_;
  Context context_;
  Stamps loaded_;             // that context_ was read from
  SteadyTime looked_at_{};    // last
  std::string last_problem_;  // as told
};

}  // namespace neuron::metrics
