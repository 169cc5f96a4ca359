// Where the random numbers of two runs come from: seeds, the first draws, and which places of a
// program draw how often.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "observe/config_check/checks.h"
#include "observe/config_check/setting_pairs.h"
#include "observe/config_check/setting_values.h"

namespace aloft::config_check {

namespace {

// A frame of a stack: "File /a/train.py, line 3, in main, torch.rand(2)".
struct Frame {
  std::string_view file, function, code;
};

Frame frame_of(std::string_view text) {
  Frame f;
  const auto take = [&](std::string_view behind, std::string_view until) {
    if (text.starts_with(behind)) text.remove_prefix(behind.size());
    const std::size_t end = text.find(until);
    const std::string_view part = text.substr(0, end);
    text = end == std::string_view::npos ? "" : text.substr(end + until.size());
    return part;
  };
  f.file = take("File ", ", line ");
  f.file = f.file.substr(f.file.rfind('/') + 1);
  take("", ", in ");
  f.function = take("", ", ");
  f.code = text;
  return f;
}

constexpr std::size_t kLongestCode = 500;
// Pairs beyond this many are not compared letter by letter: it would take minutes.
constexpr std::size_t kMostLookedAt = 10'000;

// Frame by frame the same file, function and nearly the same code: at least 0.8 on average, as
// msprobe has it.
bool same_stack(const RandomCalls& a, const RandomCalls& b) {
  if (a.stack.size() != b.stack.size()) return false;
  for (std::size_t i = 0; i < a.stack.size(); ++i) {
    if (a.stack[i] == b.stack[i]) continue;
    const Frame x = frame_of(a.stack[i]), y = frame_of(b.stack[i]);
    const double files = x.file == y.file ? 1 : 0, functions = x.function == y.function ? 1 : 0;
    if ((files + functions + 1) / 3 < 0.8) return false;
    if ((files + functions +
         similarity(x.code.substr(0, kLongestCode), y.code.substr(0, kLongestCode))) /
            3 <
        0.8)
      return false;
  }
  return true;
}

std::vector<std::string> msprobe_row(const RandomCalls* a, const RandomCalls* b) {
  constexpr const char* kNone = "no match stack";
  const RandomCalls& one = a ? *a : *b;
  return {one.op,
          std::to_string(one.rank),
          a ? join(a->stack, "\n") : kNone,
          b ? join(b->stack, "\n") : kNone,
          std::to_string(a ? a->count : 0),
          std::to_string(b ? b->count : 0)};
}

std::string place_of(const RandomCalls& c) {
  if (c.stack.empty()) return c.op;
  const std::string_view last = c.stack.back();
  return c.op + " at " + std::string(last.starts_with("File ") ? last.substr(5) : last);
}

void add(Section& section, const std::string& name, const std::string& x, const std::string& y,
         const char* advice) {
  Finding f{Level::Pass, name, name, x, y, "name"};
  if (!same_text(x, y)) f.level = Level::Error, f.advice = advice;
  f.row = {name, "0", x, y, "1", "1"};
  section.findings.push_back(std::move(f));
}

}  // namespace

Section check_random(const Side& a, const Side& b) {
  Section section{"random", {}};
  if (a.seed && b.seed) add(section, "seed", *a.seed, *b.seed, "give both sides the same seed");
  if (!a.random_place.empty() && !b.random_place.empty())
    add(section, "random state", a.random_place, b.random_place, "compare checkpoints of one step");
  if (!a.first_draws.empty() && !b.first_draws.empty())
    add(section, "first numbers drawn", join(a.first_draws, " "), join(b.first_draws, " "),
        "the generators differ: other seeds, or another algorithm");
  if (a.random.empty() || b.random.empty()) return section;
  const bool is_small = b.random.size() <= kMostLookedAt / a.random.size();
  std::set<const RandomCalls*> taken;
  for (const RandomCalls& c : a.random) {
    const auto find = [&](const auto& is_same) {
      return std::ranges::find_if(b.random, [&](const RandomCalls& other) {
        return !taken.contains(&other) && other.op == c.op && other.rank == c.rank &&
               is_same(other);
      });
    };
    auto it = find([&](const RandomCalls& other) { return other.stack == c.stack; });
    if (it == b.random.end() && is_small)
      it = find([&](const RandomCalls& other) { return same_stack(c, other); });
    Finding f{Level::Pass, place_of(c), "", std::to_string(c.count) + " calls"};
    if (it == b.random.end()) {
      f.level = Level::Error;
      f.advice = "A alone draws there: what is drawn behind it differs";
    } else {
      taken.insert(&*it);
      f.b_name = place_of(*it), f.b_value = std::to_string(it->count) + " calls";
      f.matched = "stack";
      if (c.count != it->count)
        f.level = Level::Error, f.advice = "one side draws more often: what follows differs";
    }
    f.row = msprobe_row(&c, it == b.random.end() ? nullptr : &*it);
    section.findings.push_back(std::move(f));
  }
  for (const RandomCalls& c : b.random)
    if (!taken.contains(&c))
      section.findings.push_back(
          {Level::Error, "", place_of(c), "", std::to_string(c.count) + " calls", "",
           "B alone draws there: what is drawn behind it differs", msprobe_row(nullptr, &c)});
  return section;
}

}  // namespace aloft::config_check
