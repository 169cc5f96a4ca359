// How the parts of a published tokenizer refuse what they cannot use.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace aloft::parts {

// DataError E0519; `way` is where in the file, "" for the whole of it.
DataError unusable(std::string_view file, std::string_view way, std::string_view saw,
                   std::string_view need);

// Files are from anybody: a text that the rules would make longer than this is refused.
inline constexpr std::size_t kMostGrowth = 64;
inline constexpr std::size_t kMostNormalized = (std::size_t{1} << 31) - 1;  // bytes, for ICU

}  // namespace aloft::parts
