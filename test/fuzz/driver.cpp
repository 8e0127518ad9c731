// A small fuzzer where there is no libFuzzer: an input that reaches code, or repeats it as often, as none before it is
// kept and changed further, also by what it was compared with. For GCC's -fsanitize-coverage=trace-pc,trace-cmp; itself
// built without.
//   usage: NAME_fuzz [-runs=N] [-max_total_time=SECONDS] [-timeout=SECONDS] [-seed=N] [-artifact_prefix=PATH]
//   [FILE|DIRECTORY...]
// as libFuzzer's options of these names: directories are read, what is new goes into the first; files are only run.
// An input that ends the process is left in PATHcrash-HASH.

#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPlaces = 1U << 16U;  // of code, by a hash
constexpr std::size_t kMostBytes = 4096;    // of an input made here
constexpr std::size_t kWords = 512;         // last compared with

std::array<std::atomic<std::uint8_t>, kPlaces> hits;
struct Word {
  std::array<char, 32> text{};
  std::size_t size = 0;
};
std::array<Word, kWords> words;
std::atomic<unsigned> next_word = 0;
std::atomic<bool> is_running = false;

void hit(std::uintptr_t place) {
  auto& count = hits[(place * 0x9e3779b97f4a7c15U) >> 48U];
  const auto now = count.load(std::memory_order_relaxed);
  if (now < 255) count.store(static_cast<std::uint8_t>(now + 1), std::memory_order_relaxed);
}

// Of the one thread that runs inputs; what others compare is not remembered.
thread_local bool is_fuzzing_thread = false;

void compared(const void* with, std::size_t size) {
  if (!is_fuzzing_thread || !is_running || size == 0) return;
  Word& word = words.at(next_word++ % kWords);
  word.size = std::min(size, word.text.size());
  std::memcpy(word.text.data(), with, word.size);
}

template <typename Number>
void compared_numbers(Number left, Number right) {
  compared(&left, sizeof left);
  compared(&right, sizeof right);
}

// What is at work now, for the artifact.
const std::string* current = nullptr;
std::string artifact_prefix;

std::string name_of(std::string_view input) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : input) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

void write_file(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || ::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
  }
  if (file >= 0) ::close(file);
}

void leave_artifact() {
  if (current == nullptr) return;
  const std::string path = artifact_prefix + "crash-" + name_of(*current);
  write_file(path, *current);
  std::fprintf(stderr, "the input is in %s\n", path.c_str());
}

// 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more: each a bit.
std::uint8_t bit_of(std::uint8_t count) {
  constexpr std::array<std::uint8_t, 7> kFrom{2, 3, 4, 8, 16, 32, 128};
  return static_cast<std::uint8_t>(
      1U << static_cast<unsigned>(std::upper_bound(kFrom.begin(), kFrom.end(), count) - kFrom.begin()));
}

class Fuzzer {
 public:
  explicit Fuzzer(std::uint64_t seed) : random_(seed) {}

  // True when it reached something new.
  bool run(const std::string& input) {
    for (auto& count : hits) count.store(0, std::memory_order_relaxed);
    current = &input;
    // A copy of its own size, so that reading past its end is found.
    const std::vector<unsigned char> bytes(input.begin(), input.end());
    is_running = true;
    static_cast<void>(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()));
    is_running = false;
    current = nullptr;
    ++runs_;
    bool is_new = false;
    for (std::size_t i = 0; i < kPlaces; ++i) {
      const auto count = hits[i].load(std::memory_order_relaxed);
      if (count == 0) continue;
      const std::uint8_t bit = bit_of(count);
      if ((seen_[i] & bit) != 0) continue;
      places_ += seen_[i] == 0 ? 1U : 0U;
      seen_[i] |= bit;
      is_new = true;
    }
    return is_new;
  }
  void keep(std::string input) { corpus_.push_back(std::move(input)); }

  std::string make() {
    std::string input = corpus_.empty() ? "" : corpus_[pick(corpus_.size())];
    for (std::size_t changes = 1 + pick(5); changes > 0; --changes) change(input);
    if (input.size() > kMostBytes) input.resize(kMostBytes);
    return input;
  }
  [[nodiscard]] std::uint64_t runs() const { return runs_; }
  [[nodiscard]] std::size_t places() const { return places_; }
  [[nodiscard]] std::size_t kept() const { return corpus_.size(); }

 private:
  std::size_t pick(std::size_t below) { return below == 0 ? 0 : random_() % below; }

  std::string word() {
    constexpr std::array<std::string_view, 12> kNumbers{"0",
                                                        "-1",
                                                        "1",
                                                        "127",
                                                        "255",
                                                        "65535",
                                                        "65536",
                                                        "2147483647",
                                                        "4294967296",
                                                        "9223372036854775808",
                                                        "18446744073709551616",
                                                        "1e309"};
    const Word& compared_with = words.at(pick(kWords));
    if (compared_with.size == 0 || pick(8) == 0) return std::string(kNumbers.at(pick(kNumbers.size())));
    std::string text(compared_with.text.data(), compared_with.size);
    if (compared_with.size > 1 && pick(4) == 0) std::reverse(text.begin(), text.end());
    if (compared_with.size <= 8 && pick(4) == 0) {
      std::uint64_t number = 0;
      std::memcpy(&number, text.data(), text.size());
      return std::to_string(number);
    }
    return text;
  }

  void change(std::string& input) {
    const std::size_t at = pick(input.size() + 1);
    const std::size_t length = 1 + pick(pick(4) == 0 ? 256 : 8);
    const auto byte = static_cast<char>(random_());
    switch (pick(9)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ static_cast<char>(1U << pick(8)));
        break;
      case 1:
        if (at < input.size()) input[at] = byte;
        break;
      case 2:
        input.insert(at, pick(2) == 0 ? 1 : length, byte);
        break;
      case 3:
        if (at < input.size()) input.erase(at, length);
        break;
      case 4:
        input.insert(pick(input.size() + 1), input.substr(at, length));
        break;
      case 5:
        input.insert(at, word());
        break;
      case 6: {
        const std::string text = word();
        input.replace(at, std::min(text.size(), input.size() - at), text);
        break;
      }
      case 7:
        if (at < input.size()) input.replace(at, 1, std::string(1, input[pick(input.size())]));
        break;
      default:
        if (!corpus_.empty()) {
          const std::string& other = corpus_[pick(corpus_.size())];
          input.replace(at, pick(input.size() - at + 1),
                        other.substr(pick(other.size() + 1), pick(4) == 0 ? kMostBytes : length));
        }
    }
  }

  std::mt19937_64 random_;
  std::array<std::uint8_t, kPlaces> seen_{};
  std::vector<std::string> corpus_;
  std::uint64_t runs_ = 0;
  std::size_t places_ = 0;
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

// Called by what the compiler and the sanitizers put in.
extern "C" {
void __sanitizer_cov_trace_pc();
void __sanitizer_cov_trace_pc() {
  hit(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)));
}
void __sanitizer_cov_trace_cmp1(std::uint8_t, std::uint8_t) {}
void __sanitizer_cov_trace_cmp2(std::uint16_t a, std::uint16_t b) {
  compared_numbers(a, b);
}
void __sanitizer_cov_trace_cmp4(std::uint32_t a, std::uint32_t b) {
  compared_numbers(a, b);
}
void __sanitizer_cov_trace_cmp8(std::uint64_t a, std::uint64_t b) {
  compared_numbers(a, b);
}
void __sanitizer_cov_trace_const_cmp1(std::uint8_t a, std::uint8_t) {
  compared(&a, sizeof a);
}
void __sanitizer_cov_trace_const_cmp2(std::uint16_t a, std::uint16_t) {
  compared(&a, sizeof a);
}
void __sanitizer_cov_trace_const_cmp4(std::uint32_t a, std::uint32_t) {
  compared(&a, sizeof a);
}
void __sanitizer_cov_trace_const_cmp8(std::uint64_t a, std::uint64_t) {
  compared(&a, sizeof a);
}
void __sanitizer_cov_trace_cmpf(float, float) {}
void __sanitizer_cov_trace_cmpd(double, double) {}
void __sanitizer_cov_trace_switch(std::uint64_t, std::uint64_t* cases) {
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(cases[0], 16); ++i) compared(&cases[2 + i], cases[1] / 8);
}
void __sanitizer_weak_hook_memcmp(void*, const void* a, const void* b, std::size_t size, int) {
  compared(a, size);
  compared(b, size);
}
const char* __asan_default_options();
const char* __asan_default_options() {
  return "handle_abort=1:hard_rss_limit_mb=2048";
}
}

int main(int argc, char** argv) {
  std::map<std::string, std::uint64_t, std::less<>> numbers{
      {"-runs", 0}, {"-max_total_time", 0}, {"-timeout", 25}, {"-seed", 0}};
  std::vector<fs::path> directories;
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    const auto equals = word.find('=');
    if (!word.starts_with('-')) {
      (fs::is_directory(word) ? directories : files).emplace_back(word);
    } else if (word.starts_with("-artifact_prefix=")) {
      artifact_prefix = word.substr(equals + 1);
    } else if (const auto number = numbers.find(word.substr(0, equals));
               number != numbers.end() && equals != std::string_view::npos) {
      std::from_chars(word.data() + equals + 1, word.data() + word.size(), number->second);
    }
  }
  const std::uint64_t seed = numbers["-seed"] != 0 ? numbers["-seed"] : std::random_device{}();
  std::fprintf(stderr, "Seed: %llu\n", static_cast<unsigned long long>(seed));
  __sanitizer_set_death_callback(leave_artifact);
  std::signal(SIGALRM, [](int) { std::abort(); });  // an input that takes longer than -timeout
  is_fuzzing_thread = true;
  const auto fuzzer = std::make_unique<Fuzzer>(seed);
  for (const fs::path& file : files) static_cast<void>(fuzzer->run(text_of(file)));
  if (!files.empty()) return 0;
  for (const fs::path& directory : directories) {
    for (const auto& entry : fs::directory_iterator(directory)) {
      const std::string input = text_of(entry.path());
      if (fuzzer->run(input)) fuzzer->keep(input);
    }
  }
  const std::size_t had = fuzzer->kept();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(numbers["-max_total_time"]);
  const auto done = [&] {
    return (numbers["-runs"] != 0 && fuzzer->runs() >= numbers["-runs"]) ||
           (numbers["-max_total_time"] != 0 && std::chrono::steady_clock::now() >= end);
  };
  while (!done()) {
    const std::string input = fuzzer->make();
    ::alarm(static_cast<unsigned>(numbers["-timeout"]));
    if (!fuzzer->run(input)) continue;
    fuzzer->keep(input);
    if (!directories.empty()) write_file(directories.front() / name_of(input), input);
  }
  ::alarm(0);
  std::fprintf(stderr, "#%llu cov: %zu corp: %zu\n", static_cast<unsigned long long>(fuzzer->runs()), fuzzer->places(),
               fuzzer->kept());
  std::fprintf(stderr, "stat::number_of_executed_units: %llu\nstat::new_units_added: %zu\n",
               static_cast<unsigned long long>(fuzzer->runs()), fuzzer->kept() - had);
  return 0;
}
