// A zip file in memory, of files as they are and their checksums: what a fuzzer changes within them
// comes through to who reads them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/crc32.h"
#include "files/little_endian.h"

namespace aloft {

inline std::string stored_zip(const std::vector<std::pair<std::string, std::string_view>>& files) {
  std::string zip, directory;
  for (const auto& [name, text] : files) {
    std::string sizes;
    put_little(sizes, crc32(std::as_bytes(std::span(text.data(), text.size()))), 4);
    put_little(sizes, text.size(), 4);
    put_little(sizes, text.size(), 4);
    put_little(sizes, name.size(), 2);
    put_little(sizes, 0, 2);
    put_little(directory, 0x02014b50, 4);
    directory += std::string(12, '\0') + sizes + std::string(10, '\0');
    put_little(directory, zip.size(), 4);
    directory += name;
    put_little(zip, 0x04034b50, 4);
    zip += std::string(10, '\0') + sizes + name;
    zip += text;
  }
  const std::size_t at = zip.size();
  zip += directory;
  put_little(zip, 0x06054b50, 4);
  put_little(zip, 0, 4);
  put_little(zip, files.size(), 2);
  put_little(zip, files.size(), 2);
  put_little(zip, directory.size(), 4);
  put_little(zip, at, 4);
  put_little(zip, 0, 2);
  return zip;
}

}  // namespace aloft
