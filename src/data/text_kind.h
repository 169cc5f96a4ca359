// What a file holds that is not plain text although somebody may take it for text: by its first
// bytes, and by its name where those say nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace aloft {

struct ForeignKind {
  std::string name;    // "Parquet"
  std::string advice;  // how to make text of it
};

// `start`: the first few KiB. Nothing where the file may well be text.
std::optional<ForeignKind> foreign_kind(const Path& path, std::string_view start);

}  // namespace aloft
