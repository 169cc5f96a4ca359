// Inside: where examples lie, in words: of a step whose data may be wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace aloft {

// "3, 17, 40 and 5 more": of a long list the first 32.
std::string list_of_places(const std::vector<std::uint64_t>& places);

}  // namespace aloft
