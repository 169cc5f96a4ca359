#include "observe/config_check/setting_pairs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/text.h"

namespace aloft::config_check {

namespace {

struct Synonym {
  std::string_view name, other;
};
constexpr Synonym kSynonyms[] = {
#define SYNONYM(name, other) {name, other},
#include "observe/config_check/synonyms.inc"
#undef SYNONYM
};

std::string normal(std::string_view name) {
  std::string out = lower(name);
  std::ranges::replace(out, '-', '_');
  return out;
}

std::string_view synonym_of(std::string_view name) {
  for (const Synonym& s : kSynonyms)
    if (name == s.other || name == s.name) return s.name;
  return "";
}

// Of a whole key with several parts; "" of others.
std::string_view common_name_of_whole(std::string_view key) {
  return key.find('.') == std::string_view::npos ? "" : synonym_of(normal(key));
}

// How long an example is, of programs that do not say a model's context by that name: of a recipe
// that says it in data.length that is the other word for it, not the context of its model.
constexpr std::string_view kLengths[] = {"block_size",  "cutoff_len",     "max_length",
                                         "max_seq_len", "max_seq_length", "seq_len",
                                         "seq_length"};

std::string length_of_examples(const Setting& s) {
  const bool is_said = s.key == "data.length" && s.value.is_number() && s.value > 0;
  const bool is_word =
      std::ranges::find(kLengths, std::string_view(last_part(s.key))) != std::end(kLengths);
  return is_said || is_word ? "data.length" : "";
}

// Last parts that say nothing without what stands before them.
constexpr std::string_view kOfTheirParents[] = {"enabled", "kind", "name",
                                                "params",  "type", "value"};

// The last part, of such with the one before it.
std::string own_name(std::string_view key) {
  const std::string last = last_part(key);
  if (std::ranges::find(kOfTheirParents, last) == std::end(kOfTheirParents)) return last;
  const std::size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? last : last_part(key.substr(0, dot)) + "." + last;
}

std::string without_digits(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c < '0' || c > '9') out += c;
  return out;
}

// Pairs beyond this many are not looked at letter by letter: it would take minutes.
constexpr std::size_t kMostLookedAt = 250'000;
constexpr std::size_t kLongestName = 200;
constexpr double kAlike = 0.8;  // more is, as msprobe has it

class Pairing {
 public:
  Pairing(const std::vector<Setting>& a, const std::vector<Setting>& b)
      : a_(a), b_(b), of_a_(a.size(), nullptr), taken_(b.size(), false), how_(a.size()) {}

  std::vector<SettingPair> pairs() {
    by("name", [](const Setting& s) { return s.key; });
    by("name", [](const Setting& s) { return normal(s.key); });
    by("synonym", [](const Setting& s) { return std::string(common_name_of_whole(s.key)); });
    by("name", [](const Setting& s) { return own_name(s.key); });
    by("synonym", length_of_examples);
    by("synonym", [](const Setting& s) { return std::string(common_name(s.key)); });
    by_likeness();
    std::vector<SettingPair> all;
    for (std::size_t i = 0; i < a_.size(); ++i) all.push_back({&a_[i], of_a_[i], how_[i]});
    for (std::size_t i = 0; i < b_.size(); ++i)
      if (!taken_[i]) all.push_back({nullptr, &b_[i], ""});
    return all;
  }

 private:
  struct Alike {
    double share;
    std::size_t a, b;
  };

  void join_best(std::vector<Alike>& all, const std::function<std::string(const Alike&)>& how) {
    std::ranges::stable_sort(all, std::greater(), &Alike::share);
    for (const Alike& one : all) {
      if (of_a_[one.a] || taken_[one.b]) continue;
      of_a_[one.a] = &b_[one.b];
      taken_[one.b] = true;
      how_[one.a] = how(one);
    }
  }

  // Those for which `name_of` says the same; of several that have a name in common, those whose
  // keys end most alike.
  void by(const char* how, const std::function<std::string(const Setting&)>& name_of) {
    std::map<std::string, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> groups;
    for (std::size_t i = 0; i < b_.size(); ++i)
      if (!taken_[i])
        if (std::string name = name_of(b_[i]); !name.empty())
          groups[std::move(name)].second.push_back(i);
    for (std::size_t i = 0; i < a_.size(); ++i)
      if (const auto it = of_a_[i] ? groups.end() : groups.find(name_of(a_[i])); it != groups.end())
        it->second.first.push_back(i);
    for (const auto& [name, group] : groups) {
      const auto& [left, right] = group;
      std::vector<Alike> all;
      const bool is_small = left.empty() || right.size() <= kMostLookedAt / left.size();
      for (const std::size_t i : left)
        for (const std::size_t k : right) {
          if (!is_small && k != right[0]) break;
          all.push_back({nearness(a_[i].key, b_[k].key), i, k});
        }
      join_best(all, [&](const Alike&) { return std::string(how); });
    }
  }
  // Of those that end as far alike the one that lies no deeper: the rate, not that of a group.
  static double nearness(std::string_view x, std::string_view y) {
    const auto depth = [](std::string_view key) {
      return static_cast<double>(std::ranges::count(key, '.'));
    };
    return static_cast<double>(common_end(x, y)) - std::abs(depth(x) - depth(y)) / 1024;
  }
  static std::size_t common_end(std::string_view x, std::string_view y) {
    std::size_t n = 0;
    while (n < x.size() && n < y.size() && x[x.size() - 1 - n] == y[y.size() - 1 - n]) ++n;
    return n;
  }

  void by_likeness() {
    std::vector<std::size_t> left, right;
    for (std::size_t i = 0; i < a_.size(); ++i)
      if (!of_a_[i] && a_[i].key.size() <= kLongestName) left.push_back(i);
    for (std::size_t i = 0; i < b_.size(); ++i)
      if (!taken_[i] && b_[i].key.size() <= kLongestName) right.push_back(i);
    if (left.empty() || right.size() > kMostLookedAt / left.size()) return;
    std::vector<Alike> all;
    for (const std::size_t i : left)
      for (const std::size_t k : right) {
        const std::string x = last_part(a_[i].key), y = last_part(b_[k].key);
        if (without_digits(x) == without_digits(y)) continue;  // beta1, beta2
        const double share = similarity(x, y);
        if (share > kAlike) all.push_back({share, i, k});
      }
    join_best(all, [](const Alike& one) {
      return "similar " + shortest(std::floor(one.share * 100) / 100);
    });
  }

  const std::vector<Setting>&a_, &b_;
  std::vector<const Setting*> of_a_;
  std::vector<bool> taken_;
  std::vector<std::string> how_;
};

// Characters that two texts have in common: the longest run, and what is so in front of it and
// behind it.
std::size_t common(std::string_view a, std::string_view b) {
  std::size_t longest = 0, at_a = 0, at_b = 0;
  std::vector<std::size_t> runs(b.size() + 1, 0), next(b.size() + 1, 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < b.size(); ++k) {
      next[k + 1] = a[i] == b[k] ? runs[k] + 1 : 0;
      if (next[k + 1] > longest)
        longest = next[k + 1], at_a = i + 1 - longest, at_b = k + 1 - longest;
    }
    std::swap(runs, next);
  }
  if (longest == 0) return 0;
  return longest + common(a.substr(0, at_a), b.substr(0, at_b)) +
         common(a.substr(at_a + longest), b.substr(at_b + longest));
}

}  // namespace

std::string_view common_name(std::string_view key) {
  const std::string_view whole = synonym_of(normal(key));
  return whole.empty() ? synonym_of(own_name(key)) : whole;
}

std::string last_part(std::string_view key) { return normal(key.substr(key.rfind('.') + 1)); }

double similarity(std::string_view a, std::string_view b) {
  if (a.size() + b.size() == 0) return 1;
  return 2.0 * static_cast<double>(common(a, b)) / static_cast<double>(a.size() + b.size());
}

std::vector<SettingPair> pair_settings(const std::vector<Setting>& a,
                                       const std::vector<Setting>& b) {
  return Pairing(a, b).pairs();
}

}  // namespace aloft::config_check
