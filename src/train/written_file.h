// written.json: how much the probe has written since the run was last started. docs/probe.md.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/file.h"

namespace aloft {

struct WrittenByProbe {
  std::uint64_t dumps = 0, dump_bytes = 0;  // steps, and their JSON files
  std::uint64_t files = 0, bytes = 0;       // tensors
  std::uint64_t dropped = 0;                // files that are not there, where the disk failed
  double waited_s = 0;                      // for which training waited

  // "3 steps, 1.20 MiB, and 12 tensors, 3.4 MiB; nothing was dropped".
  std::string text() const;
};

// The keys of the file.
nlohmann::ordered_json json_of(const WrittenByProbe& written);
// EnvironmentError E0603.
void write_written(const Path& folder, const WrittenByProbe& written);
// Nothing where there is no such file.
std::optional<WrittenByProbe> read_written(const Path& folder);

}  // namespace aloft
