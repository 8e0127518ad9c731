#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neuron::fleet {

// A std::map<std::string, Value> that keeps equal entries in memory once: copies share them, and so do maps that were
// filled through one Store. The nodes of a fleet publish the same few attributes. Access that could change an entry
// makes it this map's own. Copies may be used by other threads, one map by one at a time.
template <typename Value>
class SharedMap {
 public:
  struct Entry {
    std::string first;  // named as those of std::pair
    Value second{};
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

 private:
  using Pointer = std::shared_ptr<Entry>;
  using Entries = std::vector<Pointer>;

  template <typename Item>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = Item*;
    using reference = Item&;

    Iterator() = default;
    explicit Iterator(typename Entries::const_iterator at) : at_(at) {}
    Item& operator*() const { return **at_; }
    Item* operator->() const { return at_->get(); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    typename Entries::const_iterator at_;
  };

 public:
  using iterator = Iterator<Entry>;
  using const_iterator = Iterator<const Entry>;

  // Equal entries of several maps. One thread.
  class Store {
   public:
    [[nodiscard]] Pointer shared(Entry entry) {
      auto pointer = std::make_shared<Entry>(std::move(entry));
      return *entries_.insert(std::move(pointer)).first;
    }

   private:
    struct Less {
      bool operator()(const Pointer& a, const Pointer& b) const { return *a < *b; }
    };
    std::set<Pointer, Less> entries_;
  };

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  void clear() { entries_.clear(); }

  [[nodiscard]] const_iterator begin() const { return const_iterator(entries_.begin()); }
  [[nodiscard]] const_iterator end() const { return const_iterator(entries_.end()); }
  [[nodiscard]] iterator begin() {
    for (Pointer& entry : entries_) make_own(entry);
    return iterator(entries_.cbegin());
  }
  [[nodiscard]] iterator end() { return iterator(entries_.cend()); }

  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != end(); }
  [[nodiscard]] const_iterator find(std::string_view name) const {
    const std::size_t place = place_of(name);
    return has(place, name) ? const_iterator(at(entries_.cbegin(), place)) : end();
  }
  [[nodiscard]] iterator find(std::string_view name) {
    const std::size_t place = place_of(name);
    if (!has(place, name)) return end();
    make_own(entries_[place]);
    return iterator(at(entries_.cbegin(), place));
  }
  Value& operator[](const std::string& name) {
    const std::size_t place = place_of(name);
    if (!has(place, name)) entries_.insert(at(entries_.cbegin(), place), std::make_shared<Entry>(Entry{name, {}}));
    make_own(entries_[place]);
    return entries_[place]->second;
  }

  // Without effect where the name is known.
  void add(Entry entry, Store& store) { add(store.shared(std::move(entry))); }
  void merge(const SharedMap& more) {
    for (const Pointer& entry : more.entries_) add(entry);
  }
  void shrink_to_fit() { entries_.shrink_to_fit(); }

 private:
  static auto at(typename Entries::const_iterator first, std::size_t place) {
    return first + static_cast<std::ptrdiff_t>(place);
  }
  static void make_own(Pointer& entry) {
    if (entry.use_count() > 1) entry = std::make_shared<Entry>(*entry);
  }
  [[nodiscard]] std::size_t place_of(std::string_view name) const {
    const auto found = std::ranges::lower_bound(entries_, name, {},
                                                [](const Pointer& entry) { return std::string_view(entry->first); });
    return static_cast<std::size_t>(found - entries_.begin());
  }
  [[nodiscard]] bool has(std::size_t place, std::string_view name) const {
    return place < entries_.size() && entries_[place]->first == name;
  }
  void add(Pointer entry) {
    const std::size_t place = place_of(entry->first);
    if (!has(place, entry->first)) entries_.insert(at(entries_.cbegin(), place), std::move(entry));
  }

  Entries entries_;  // by name
};

}  // namespace neuron::fleet
