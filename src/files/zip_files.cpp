#include "files/zip_files.h"

#include <zlib.h>

#include <algorithm>
#include <optional>

#include "files/crc32.h"
#include "files/little_endian.h"
#include "files/zip_directory.h"

namespace aloft {

namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kStored = 0, kDeflated = 8;
constexpr std::uint64_t kEncrypted = 1;

// Exactly `size` bytes; nothing where what is packed has others.
std::optional<std::string> inflated(Bytes packed, std::uint64_t size) {
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) throw ZipError("no memory to unpack it");
  std::string text(size, '\0');
  // zlib reads what it is given, and has no const.
  z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = reinterpret_cast<Bytef*>(text.data());
  z.avail_out = static_cast<uInt>(size);
  int status = inflate(&z, Z_FINISH);
  const bool is_whole = status == Z_STREAM_END && z.total_out == size;
  inflateEnd(&z);
  if (!is_whole) return std::nullopt;
  return text;
}

// What a deflated byte may grow to at most; more than that is a mistake, found before anything is
// allocated.
constexpr std::uint64_t kMostGrowth = 1032;

}  // namespace

std::map<std::string, std::string> read_zip(Bytes file, std::uint64_t limit) {
  const auto directory = zip_directory(file);
  if (!directory) throw ZipError("no zip file, or one that is cut");
  std::map<std::string, std::string> all;
  std::uint64_t total = 0;
  for (const ZipDirectoryEntry& e : *directory) {
    const std::string name(e.name);
    if (e.flags & kEncrypted) throw ZipError(name + " is encrypted");
    const auto packed = zip_bytes(file, e);
    if (!packed) throw ZipError(name + " lies beyond its end");
    if (e.size > limit - total) throw ZipError("more to unpack than such a file has");
    total += e.size;
    std::optional<std::string> text;
    if (e.method == kStored && packed->size() == e.size)
      text.emplace(reinterpret_cast<const char*>(packed->data()), packed->size());
    else if (e.method == kDeflated && e.size / kMostGrowth <= packed->size())
      text = inflated(*packed, e.size);
    else if (e.method != kDeflated)
      throw ZipError(name + " is packed in a way that is not known");
    if (!text || crc32(std::as_bytes(std::span(*text))) != e.checksum)
      throw ZipError(name + " is damaged");
    all.insert_or_assign(name, std::move(*text));
  }
  return all;
}

}  // namespace aloft
