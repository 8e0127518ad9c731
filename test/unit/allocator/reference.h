#pragma once

#include <cstdint>
#include <vector>

#include "agent/allocator/allocator.h"

// The rules of docs/allocation.md by trying everything. Shares nothing with the allocator but its input and
// output.
namespace neuron::test {

using Set = std::uint32_t;  // bit = position in NodeTopology::devices

// What a question wants beside the set itself.
struct Wanted {
  std::vector<int> given_efas;  // to the same container
  std::vector<int> free_efas;
  int efas = 0;  // of free_efas
  Set reluctant = 0;
};

// One node of at most 16 devices. Tables hold the part of the order that depends on one set only.
class Reference {
 public:
  explicit Reference(const allocator::NodeTopology& topology);

  // Positions; `free` is what whole groups are counted in, `must` within `pool`, size <= members of pool.
  [[nodiscard]] Set best_devices(Set pool, Set free, Set must, int size, const Wanted& wanted) const;
  [[nodiscard]] std::vector<int> devices(const allocator::ChooseRequest& request) const;
  [[nodiscard]] std::vector<int> cores(const allocator::ChooseRequest& request) const;
  [[nodiscard]] std::vector<int> efas(const allocator::ChooseRequest& request) const;

  // Smaller is better, lowest positions in the low 16 bits; without the distance to EFAs.
  [[nodiscard]] std::uint64_t key(Set chosen, Set left) const { return alone_[chosen] | left_[left]; }

 private:
  struct CoreQuestion;
  [[nodiscard]] int class_of(int device, int efa) const;
  [[nodiscard]] std::uint64_t distance(Set chosen, const std::vector<int>& efas) const;
  [[nodiscard]] std::vector<Set> served_by(const std::vector<int>& efas, Set chosen) const;
  [[nodiscard]] std::uint64_t missed(Set chosen, const Wanted& wanted) const;
  [[nodiscard]] std::uint64_t apart(Set chosen, const Wanted& wanted) const;
  [[nodiscard]] Wanted wanted_by(const allocator::ChooseRequest& request, int devices) const;
  [[nodiscard]] std::pair<int, int> near_each_other() const;  // devices, EFAs
  [[nodiscard]] Set set_of(const std::vector<int>& indices) const;
  [[nodiscard]] int fit(Set chosen) const;
  [[nodiscard]] bool in_one_piece(Set chosen) const;
  [[nodiscard]] int hops_within(Set chosen) const;
  [[nodiscard]] int places(Set chosen, bool numa) const;
  [[nodiscard]] int runs(Set chosen) const;
  [[nodiscard]] std::uint64_t left_key(Set left) const;
  [[nodiscard]] bool core_range(const CoreQuestion& question, Set allowed, std::vector<int>& answer) const;
  [[nodiscard]] std::vector<int> beside(const std::vector<int>& devices, std::vector<int> chosen,
                                        const std::vector<int>& available, int size) const;
  [[nodiscard]] std::vector<int> likely(const allocator::ChooseRequest& request) const;
  [[nodiscard]] std::vector<int> packed(std::vector<int> chosen, const std::vector<int>& available, int size) const;

  const allocator::NodeTopology& topology_;
  int count_;
  std::vector<Set> links_;
  std::vector<std::vector<int>> hops_;
  std::vector<Set> pairs_;
  std::vector<std::uint64_t> alone_;
  std::vector<std::uint64_t> left_;
};

}  // namespace neuron::test
