#include "files/zip_directory.h"

#include <algorithm>

#include "files/little_endian.h"

namespace aloft {
namespace {

using Bytes = std::span<const std::byte>;

std::string_view text(Bytes b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

constexpr std::uint64_t kEndMark = 0x06054b50, kEntryMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;

// Where the directory of a zip file ends, which a comment may follow.
std::optional<std::size_t> end_record(Bytes file) {
  if (file.size() < kEndBytes) return std::nullopt;
  constexpr std::size_t kLongestComment = 65535;
  const std::size_t last = file.size() - kEndBytes;
  for (std::size_t back = 0; back <= std::min(last, kLongestComment); ++back)
    if (little(file, last - back, 4) == kEndMark) return last - back;
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<ZipDirectoryEntry>> zip_directory(Bytes file) {
  const std::optional<std::size_t> end = end_record(file);
  if (!end) return std::nullopt;
  std::vector<ZipDirectoryEntry> all;
  std::size_t at = little(file, *end + 16, 4).value_or(file.size());
  while (little(file, at, 4) == kEntryMark && file.size() - at >= kEntryBytes) {
    const auto of = [&](std::size_t offset, std::size_t n) {
      return *little(file, at + offset, n);
    };
    const std::size_t name = of(28, 2), extra = of(30, 2), comment = of(32, 2);
    if (file.size() - at - kEntryBytes < name) return std::nullopt;
    all.push_back({text(file.subspan(at + kEntryBytes, name)), of(8, 2), of(10, 2), of(16, 4),
                   of(20, 4), of(24, 4), of(42, 4)});
    at += kEntryBytes + name + extra + comment;
  }
  // More entries than two bytes count are counted elsewhere.
  const std::size_t count = little(file, *end + 10, 2).value_or(0);
  if (count != 0xffff && count != all.size()) return std::nullopt;
  return all;
}

std::optional<Bytes> zip_bytes(Bytes file, const ZipDirectoryEntry& e) {
  if (little(file, e.place, 4) != kLocalMark) return std::nullopt;
  const auto its_name = little(file, e.place + 26, 2), its_extra = little(file, e.place + 28, 2);
  if (!its_name || !its_extra) return std::nullopt;
  const std::size_t begin = e.place + kLocalBytes + *its_name + *its_extra;
  if (begin > file.size() || file.size() - begin < e.packed_size) return std::nullopt;
  return file.subspan(begin, e.packed_size);
}

}  // namespace aloft
