#include "tools/neuron-gather/tar_text.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace neuron::gather {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kTime = 1'577'836'800;  // 2020-01-01, so that tar does not complain about 1970

using Header = std::array<char, kBlock>;

void put(Header& header, std::size_t at, std::string_view text) {
  std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
}

// Octal digits with leading zeros, and the zero byte that ends the field.
void put_octal(Header& header, std::size_t at, std::size_t width, std::uint64_t value) {
  for (std::size_t i = width - 1; i-- > 0; value >>= 3U) header[at + i] = static_cast<char>('0' + (value & 7U));
}

void pad(std::string& tar) {
  tar.resize((tar.size() + kBlock - 1) / kBlock * kBlock, '\0');
}

// Where to cut `path` into prefix and name of a ustar header; npos when that is impossible.
std::size_t cut_of(std::string_view path) {
  constexpr std::size_t kName = 100;
  constexpr std::size_t kPrefix = 155;
  if (path.size() <= kName) return 0;
  for (std::size_t at = path.find('/'); at <= kPrefix; at = path.find('/', at + 1)) {
    if (path.size() - at - 1 <= kName) return at;
  }
  return std::string_view::npos;
}

void append_header(std::string& tar, std::string_view path, char type, std::uint64_t size, std::string_view target) {
  Header header{};
  const std::size_t cut = cut_of(path);
  if (cut == std::string_view::npos) {
    put(header, 0, path.substr(0, 100));  // the pax header before it has the whole
  } else {
    put(header, 0, cut == 0 ? path : path.substr(cut + 1));
    put(header, 345, path.substr(0, cut));
  }
  put_octal(header, 100, 8, type == '5' ? 0755 : type == '2' ? 0777 : 0644);
  put_octal(header, 108, 8, 0);
  put_octal(header, 116, 8, 0);
  put_octal(header, 124, 12, size);
  put_octal(header, 136, 12, kTime);
  put(header, 148, "        ");
  header[156] = type;
  put(header, 157, target.substr(0, 100));
  put(header, 257,
      std::string_view("ustar\0"
                       "00",
                       8));
  std::uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put_octal(header, 148, 7, sum);
  header[154] = '\0';
  tar.append(header.data(), header.size());
}

// "<length> <key>=<value>\n", where the length counts itself.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) length = std::to_string(length).size() + rest;
  return std::to_string(length) + ' ' + std::string(key) + '=' + std::string(value) + '\n';
}

void append_entry(std::string& tar, const std::string& path, const Entry& entry) {
  const std::string_view target = entry.kind == EntryKind::link ? std::string_view(entry.text) : std::string_view{};
  std::string extended;
  if (cut_of(path) == std::string_view::npos) extended += pax_record("path", path);
  if (target.size() > 100) extended += pax_record("linkpath", target);
  if (!extended.empty()) {
    append_header(tar, "pax-header", 'x', extended.size(), "");
    tar += extended;
    pad(tar);
  }
  const char type = entry.kind == EntryKind::folder ? '5' : entry.kind == EntryKind::link ? '2' : '0';
  append_header(tar, path, type, type == '0' ? entry.text.size() : 0, target);
  if (type != '0') return;
  tar += entry.text;
  pad(tar);
}

}  // namespace

std::string tar_text(const Capture& capture, std::string_view top) {
  std::string tar;
  append_entry(tar, std::string(top) + '/', {});
  for (const auto& [path, entry] : capture.entries()) {
    std::string full = std::string(top) + '/' + path;
    if (entry.kind == EntryKind::folder) full += '/';
    append_entry(tar, full, entry);
  }
  tar.append(2 * kBlock, '\0');
  return tar;
}

Result<std::string> gzip_text(std::string_view text) {
  constexpr int kGzipWindow = 15 + 16;
  constexpr int kMemoryLevel = 8;
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    return fail(ErrorCode::internal, "zlib could not start");
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  const bool fits = text.size() <= std::numeric_limits<uInt>::max() && out.size() <= std::numeric_limits<uInt>::max();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // NOLINT: zlib does not write there
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = fits ? deflate(&stream, Z_FINISH) : Z_BUF_ERROR;
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) return fail(ErrorCode::internal, "zlib could not compress");
  return out;
}

}  // namespace neuron::gather
