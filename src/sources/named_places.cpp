#include "sources/named_places.h"

#include <algorithm>

namespace aloft {

std::string list_of_places(const std::vector<std::uint64_t>& places) {
  constexpr std::size_t kMost = 32;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, places.size()); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(places[i]);
  return places.size() > kMost ? text + " and " + std::to_string(places.size() - kMost) + " more"
                               : text;
}

}  // namespace aloft
