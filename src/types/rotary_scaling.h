// How the angles of rotary positions are stretched, for sequences that are longer than those that a
// model first saw: which pair of a head turns by how much from one position to the next, and by
// what cosines and sines are multiplied. All of it in double.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aloft {

// One way of stretching. In graphs it is a text: "llama3 factor=8 original=8192 low=1 high=4".
struct RotaryScaling {
  // "default": pair i of D features turns by base^(-2 i / D). "linear": that over `factor`.
  // "llama3": pairs whose wavelength is beyond original / low positions turn by that over `factor`,
  // those below original / high as they did, those between by a mean of both (Dubey et al. 2024).
  // "yarn": the same by turns within `original` positions: more than `fast`, fewer than `slow`
  // (Peng et al. 2023). "longrope": pair i turns by that over within[i], in sequences of more
  // than `original` positions over beyond[i] (Ding et al. 2024).
  std::string kind = "default";
  double factor = 1, original = 0;
  double low = 0, high = 0;
  double fast = 32, slow = 1;
  bool truncate = true;  // yarn: the bounds between its pairs are whole numbers
  std::vector<double> within = {}, beyond = {};
  double magnitude = 1;  // factor of cosines and sines

  std::string str() const;  // what differs from the defaults; "": nothing is stretched
  friend bool operator==(const RotaryScaling&, const RotaryScaling&) = default;
};

// What str() wrote; nothing where it cannot be that.
std::optional<RotaryScaling> parse_rotary_scaling(std::string_view text);

// What keeps `width` features of base `base` from being turned so, as "need"; "" where nothing
// does.
std::string need_of(const RotaryScaling& scaling, double base, std::int64_t width);

// The kinds' names.
std::vector<std::string_view> rotary_scalings();

// Radians from one position to the next, for each of width / 2 pairs.
struct RotaryRates {
  std::vector<double> turns;
  // Of sequences of more than `first` positions, if not empty, instead of `turns`.
  std::vector<double> beyond = {};
  double first = 0;
  double magnitude = 1;

  const std::vector<double>& of(double length) const {
    return beyond.empty() || length <= first ? turns : beyond;
  }
};
RotaryRates rotary_rates(const RotaryScaling& scaling, double base, std::int64_t width);

// Factors of cosines and sines that the papers give: of yarn, with the weights `mscale` above and
// `mscale_all` below the line (0: not said), and of longrope.
double yarn_magnitude(double factor, double mscale = 0, double mscale_all = 0);
double longrope_magnitude(double factor, double original);

}  // namespace aloft
