#include "files/zip_entry.h"

#include "base/error.h"
#include "files/crc32.h"
#include "files/little_endian.h"
#include "files/zip_directory.h"

namespace aloft {

using Bytes = std::span<const std::byte>;

bool is_zip(Bytes file) { return little(file, 0, 4) == 0x04034b50; }

std::optional<Bytes> zip_entry(Bytes file, std::string_view ending,
                               const std::string& name_of_file) {
  const auto directory = zip_directory(file);
  if (!directory) return std::nullopt;
  for (const ZipDirectoryEntry& e : *directory) {
    if (!e.name.ends_with(ending)) continue;
    const auto inside = e.method == 0 ? zip_bytes(file, e) : std::nullopt;
    if (!inside || e.size != e.packed_size) return std::nullopt;
    if (crc32(*inside) != e.checksum)
      throw DataError("E0832", "not a usable file of torch.save")
          .at(name_of_file)
          .saw("a damaged zip file: its " + std::string(ending.substr(ending.rfind('/') + 1)) +
               " has another checksum (CRC-32)")
          .need("the file as it was written")
          .advice("write or fetch it again");
    return inside;
  }
  return std::nullopt;
}

}  // namespace aloft
