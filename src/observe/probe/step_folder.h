// Where a dump has a step: DIR/step12/rank, as msprobe names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/file.h"

namespace aloft::probe {

// Counted from 0.
Path step_folder(const Path& dump, std::int64_t step);

// Of the name "step12" 12; of another nothing.
std::optional<std::int64_t> step_of_folder(std::string_view name);

// Whether the probe has written a step into `folder`.
bool is_step_of_dump(const Path& folder);

}  // namespace aloft::probe
