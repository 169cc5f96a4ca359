// Inside: keys of [optimizer] that other systems have and this one needs no word for.
#pragma once

#include <span>
#include <string_view>

namespace aloft {

struct ForeignKey {
  std::string_view key;
  std::string_view read_as;  // the key that it is here; empty: a switch that changes nothing
  std::string_view why;
};

std::span<const ForeignKey> foreign_keys();
// Null where the key is none of them.
const ForeignKey* foreign_key(std::string_view key);

}  // namespace aloft
