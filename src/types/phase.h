// The part of a training step that a node belongs to.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace aloft {

enum class Phase : std::uint8_t { Forward, Backward, Update };

constexpr std::string_view name_of(Phase p) {
  constexpr std::string_view names[] = {"forward", "backward", "update"};
  return names[static_cast<int>(p)];
}

constexpr std::optional<Phase> parse_phase(std::string_view text) {
  for (Phase p : {Phase::Forward, Phase::Backward, Phase::Update})
    if (name_of(p) == text) return p;
  return std::nullopt;
}

}  // namespace aloft
