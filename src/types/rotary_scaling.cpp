#include "types/rotary_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/text.h"

namespace aloft {
namespace {

using S = RotaryScaling;

struct Number {
  std::string_view name;
  double S::*member;
};
constexpr Number kNumbers[] = {
    {"factor", &S::factor},      {"original", &S::original}, {"low", &S::low},
    {"high", &S::high},          {"fast", &S::fast},         {"slow", &S::slow},
    {"magnitude", &S::magnitude}};
struct List {
  std::string_view name;
  std::vector<double> S::*member;
};
constexpr List kLists[] = {{"within", &S::within}, {"beyond", &S::beyond}};
constexpr std::string_view kTruncate = "truncate";

bool is_positive(double x) { return std::isfinite(x) && x > 0; }

// ---- the kinds ----

std::string need_nothing(const S&, double, std::size_t) { return ""; }
void keep(const S&, double, RotaryRates&) {}

std::string need_factor(const S& s, double, std::size_t) {
  return is_positive(s.factor) ? "" : "a positive factor";
}
void linear(const S& s, double, RotaryRates& r) {
  for (double& turn : r.turns) turn /= s.factor;
}

std::string need_llama3(const S& s, double, std::size_t) {
  if (!is_positive(s.factor) || !is_positive(s.original)) return "a positive factor and original";
  return is_positive(s.low) && is_positive(s.high) && s.low < s.high ? ""
                                                                     : "0 < low < high, finite";
}
void llama3(const S& s, double, RotaryRates& r) {
  for (double& turn : r.turns) {
    const double turns = s.original * turn / (2 * std::numbers::pi);  // within the first positions
    if (turns > s.high) continue;
    const double kept = turns < s.low ? 0 : (turns - s.low) / (s.high - s.low);
    turn = (1 - kept) * turn / s.factor + kept * turn;
  }
}

std::string need_yarn(const S& s, double base, std::size_t) {
  if (!is_positive(s.factor) || !is_positive(s.original)) return "a positive factor and original";
  if (base <= 1) return "a base beyond 1";
  return is_positive(s.fast) && is_positive(s.slow) ? "" : "a positive fast and slow";
}
void yarn(const S& s, double base, RotaryRates& r) {
  const double width = 2 * static_cast<double>(r.turns.size());
  // The pair, as a fraction, that turns so often within the first positions.
  const auto pair_of = [&](double turns) {
    return width * std::log(s.original / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  double first = pair_of(s.fast), last = pair_of(s.slow);
  if (s.truncate) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0);
  last = std::min(last, width - 1);
  if (first == last) last += 0.001;
  for (std::size_t i = 0; i < r.turns.size(); ++i) {
    const double stretched =
        std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
    r.turns[i] *= stretched / s.factor + (1 - stretched);
  }
}

std::string need_longrope(const S& s, double, std::size_t pairs) {
  if (!is_positive(s.original)) return "a positive original";
  for (const auto* list : {&s.within, &s.beyond})
    if (list->size() != pairs || !std::all_of(list->begin(), list->end(), is_positive))
      return std::to_string(pairs) + " positive numbers within and beyond, one a pair";
  return "";
}
void longrope(const S& s, double, RotaryRates& r) {
  r.beyond = r.turns;
  r.first = s.original;
  for (std::size_t i = 0; i < r.turns.size(); ++i) {
    r.turns[i] /= s.within[i];
    r.beyond[i] /= s.beyond[i];
  }
}

struct Kind {
  std::string_view name;
  std::string (*need)(const S&, double base, std::size_t pairs);
  void (*stretch)(const S&, double base, RotaryRates&);
};
constexpr Kind kKinds[] = {{"default", need_nothing, keep},
                           {"linear", need_factor, linear},
                           {"llama3", need_llama3, llama3},
                           {"yarn", need_yarn, yarn},
                           {"longrope", need_longrope, longrope}};

const Kind* find_kind(std::string_view name) {
  const auto* const it = std::ranges::find(kKinds, name, &Kind::name);
  return it == std::end(kKinds) ? nullptr : it;
}

// ---- the text ----

std::optional<std::vector<double>> numbers_of(std::string_view text) {
  std::vector<double> out;
  for (const std::string_view part : split(text, ',')) {
    const auto value = parse_double(part);
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

// One "name=value" of a text.
bool take(std::string_view name, const std::vector<double>& values, S& s) {
  for (const auto& [known, member] : kLists)
    if (known == name) {
      s.*member = values;
      return true;
    }
  if (values.size() != 1) return false;
  if (name == kTruncate) {
    s.truncate = values[0] != 0;
    return values[0] == 0 || values[0] == 1;
  }
  for (const auto& [known, member] : kNumbers)
    if (known == name) {
      s.*member = values[0];
      return true;
    }
  return false;
}

}  // namespace

std::string RotaryScaling::str() const {
  const RotaryScaling plain;
  std::string out;
  const auto add = [&](std::string_view name, const std::string& value) {
    out += " " + std::string(name) + "=" + value;
  };
  for (const auto& [name, member] : kNumbers)
    if (this->*member != plain.*member) add(name, shortest(this->*member));
  if (!truncate) add(kTruncate, "0");
  for (const auto& [name, member] : kLists) {
    std::vector<std::string> parts;
    for (const double value : this->*member) parts.push_back(shortest(value));
    if (!parts.empty()) add(name, join(parts, ","));
  }
  return kind == plain.kind && out.empty() ? "" : kind + out;
}

std::optional<RotaryScaling> parse_rotary_scaling(std::string_view text) {
  RotaryScaling s;
  if (text.empty()) return s;
  const std::vector<std::string_view> parts = split(text, ' ');
  s.kind = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto equals = parts[i].find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const auto values = numbers_of(parts[i].substr(equals + 1));
    if (!values || !take(parts[i].substr(0, equals), *values, s)) return std::nullopt;
  }
  return s;
}

std::vector<std::string_view> rotary_scalings() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  return names;
}

std::string need_of(const RotaryScaling& s, double base, std::int64_t width) {
  const Kind* kind = find_kind(s.kind);
  if (!kind) {
    std::string names;
    for (const Kind& known : kKinds) names += (names.empty() ? "" : ", ") + std::string(known.name);
    return "one of " + names;
  }
  if (!is_positive(s.magnitude)) return "a positive magnitude";
  return kind->need(s, base, static_cast<std::size_t>(width / 2));
}

RotaryRates rotary_rates(const RotaryScaling& s, double base, std::int64_t width) {
  RotaryRates out;
  for (std::int64_t i = 0; i < width / 2; ++i)
    out.turns.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width)));
  out.magnitude = s.magnitude;
  find_kind(s.kind)->stretch(s, base, out);
  return out;
}

double yarn_magnitude(double factor, double mscale, double mscale_all) {
  const auto weighed = [&](double weight) {
    return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
  };
  return mscale != 0 && mscale_all != 0 ? weighed(mscale) / weighed(mscale_all) : weighed(1);
}

double longrope_magnitude(double factor, double original) {
  return factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original));
}

}  // namespace aloft
