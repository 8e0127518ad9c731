#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace neuron::host {

// While it lives every open fails with EMFILE; what is open stays open.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &usual_), 0);
    const rlimit none{0, usual_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &usual_), 0); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit usual_{};
};

}  // namespace neuron::host
