// A zip file, entry by entry, as torch.save writes it: nothing is compressed, and what an entry
// holds begins at a multiple of 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/file.h"

namespace aloft {

// All of it together has less than 4 GiB: the format has 32 bits for a place.
class ZipWriter {
 public:
  // Nothing appears at `path` before finish(). EnvironmentError E0603, here and below.
  explicit ZipWriter(const Path& path) : file_(path) {}

  void add(const std::string& name, std::span<const std::byte> data);
  void add(const std::string& name, std::string_view text);
  void finish();

 private:
  AtomicFile file_;
  std::string directory_;
  std::uint64_t entries_ = 0;
};

}  // namespace aloft
