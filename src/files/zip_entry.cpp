#include "files/zip_entry.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "files/crc32.h"
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

bool is_zip(Bytes file) { return little(file, 0, 4) == kLocalMark; }

std::optional<Bytes> zip_entry(Bytes file, std::string_view ending,
                               const std::string& name_of_file) {
  const std::optional<std::size_t> end = end_record(file);
  if (!end) return std::nullopt;
  std::size_t at = little(file, *end + 16, 4).value_or(file.size());
  while (little(file, at, 4) == kEntryMark && file.size() - at >= kEntryBytes) {
    const auto of = [&](std::size_t offset, std::size_t n) {
      return *little(file, at + offset, n);
    };
    const std::size_t name = of(28, 2), extra = of(30, 2), comment = of(32, 2);
    if (file.size() - at - kEntryBytes < name) return std::nullopt;
    if (text(file.subspan(at + kEntryBytes, name)).ends_with(ending)) {
      const std::size_t size = of(24, 4), local = of(42, 4);
      if (of(10, 2) != 0 || little(file, local, 4) != kLocalMark) return std::nullopt;
      const auto its_name = little(file, local + 26, 2), its_extra = little(file, local + 28, 2);
      if (!its_name || !its_extra) return std::nullopt;
      const std::size_t begin = local + kLocalBytes + *its_name + *its_extra;
      if (begin > file.size() || file.size() - begin < size) return std::nullopt;
      const Bytes inside = file.subspan(begin, size);
      if (crc32(inside) != of(16, 4))
        throw DataError("E0832", "not a usable file of torch.save")
            .at(name_of_file)
            .saw("a damaged zip file: its " + std::string(ending.substr(ending.rfind('/') + 1)) +
                 " has another checksum (CRC-32)")
            .need("the file as it was written")
            .advice("write or fetch it again");
      return inside;
    }
    at += kEntryBytes + name + extra + comment;
  }
  return std::nullopt;
}

}  // namespace aloft
