#pragma once

// Ends this process, as kill -9 would, at a chosen one of its calls that change files: this test program defines open,
// write, rename, renameat2, unlink and flock itself, in front of the C library's.
namespace neuron::plugin::dra {

enum class KillAt {
  before,    // the call is not made
  half_way,  // of a write, half of it is made; any other call is
  after,
};

// From now on, at the `step`-th such call, counted from 1. To be called in a child process.
void kill_at(int step, KillAt at);

// From now on no file gets room that it does not have: nothing new can be written to, nothing grows.
void fill_disk(bool is_full);

inline constexpr int kKilled = 77;  // exit status of a process that ended so

}  // namespace neuron::plugin::dra
