// Token files of other programs, read through a memory map:
//   llm.c      256 int32 (magic, version, count, zeros), then the tokens: magic 20240520, version
//   1,
//              uint16 (GPT-2); magic 20240801, version 7, uint32 (Llama 3)
//   nanoGPT    uint16 from the first byte on, no header (train.bin)
// All little endian.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"

namespace aloft {

struct TokenBin {
  std::shared_ptr<const MappedFile> file;  // keeps the bytes; null after parse_token_bin
  std::span<const std::byte> tokens;
  std::uint64_t count = 0;
  int token_bytes = 2;
  bool has_header = false;
};

// A file that begins with one of llm.c's magic numbers must agree with its header to the byte; what
// begins otherwise is taken as headerless. DataError E0601, E0620.
TokenBin open_token_bin(const Path& path);
// Whether it begins with one of those numbers.
bool has_token_bin_magic(std::span<const std::byte> file);
TokenBin parse_token_bin(std::span<const std::byte> file, const std::string& name);

}  // namespace aloft
