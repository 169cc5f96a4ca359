// What MindSpore's precision lists name, in the words of this library: which op here does what an
// op or a layer (a Cell) there does.
#pragma once

#include <span>
#include <string_view>

namespace aloft::amp {

// An entry of a list there, and the op that computes it here.
struct Counterpart {
  std::string_view theirs;  // "nn.Dense", "P.MatMul", "gen.Softmax", as the list spells it
  std::string_view ours;    // the op's name, several with a comma; empty: there is none here
};

// AMP_WHITE_LIST, of level O1.
std::span<const Counterpart> white_counterparts();
// AMP_AUTO_WHITE_LIST and AMP_AUTO_BLACK_LIST, of level auto.
std::span<const Counterpart> auto_white_counterparts();
std::span<const Counterpart> auto_black_counterparts();

}  // namespace aloft::amp
