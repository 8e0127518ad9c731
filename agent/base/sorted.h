#pragma once

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

// Vectors as sets: ascending, each value once. Pure.
namespace neuron {

template <typename T>
[[nodiscard]] std::vector<T> sorted_unique(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

template <typename T>
[[nodiscard]] bool is_in(const T& value, const std::vector<T>& set) {
  return std::binary_search(set.begin(), set.end(), value);
}

template <typename T>
[[nodiscard]] std::vector<T> common(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

template <typename T>
[[nodiscard]] std::vector<T> merged(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

template <typename T>
[[nodiscard]] std::vector<T> without(const std::vector<T>& all, const std::vector<T>& gone) {
  std::vector<T> rest;
  std::set_difference(all.begin(), all.end(), gone.begin(), gone.end(), std::back_inserter(rest));
  return rest;
}

}  // namespace neuron
