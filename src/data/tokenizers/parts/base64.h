// Bytes written in the 64 letters of RFC 4648.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace aloft::parts {

// The bytes; nothing where the text is not that writing (padding may be left out).
std::optional<std::string> from_base64(std::string_view text);

}  // namespace aloft::parts
