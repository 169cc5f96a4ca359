#include "plan/skyline_search.h"

#include <algorithm>
#include <numeric>

namespace aloft {

SkylineSearch::SkylineSearch(const std::vector<Block>& blocks, int sections, int capacity)
    : skyline_(blocks, sections, capacity),
      offsets_(blocks.size(), 0),
      starts_(sections + 1, 0),
      frames_(blocks.size() + 2) {}

Outcome SkylineSearch::run(const std::vector<int>& ranks, std::int64_t& nodes) {
  ranks_ = ranks;
  left_ = nodes;
  std::vector<int> all(skyline_.count());
  std::iota(all.begin(), all.end(), 0);
  std::stable_sort(all.begin(), all.end(),
                   [&](int a, int b) { return skyline_.block(a).from < skyline_.block(b).from; });
  const Outcome outcome = skyline_.check_all() ? solve_parts(all, -1, 0) : Outcome::Impossible;
  skyline_.take_back(0);
  nodes = std::max<std::int64_t>(left_, 0);
  return outcome;
}

// Cuts `all` without `skip` where no block spans a boundary: the parts do not touch each other, and
// are solved one after the other, small ones first.
Outcome SkylineSearch::solve_parts(const Part& all, int skip, int depth) {
  std::vector<Part>& parts = frames_[depth].parts;
  int n = 0, end = -1;
  for (int b : all) {
    if (b == skip) continue;
    const Block& block = skyline_.block(b);
    if (end < 0 || block.from >= end) {
      if (static_cast<int>(parts.size()) <= n) parts.emplace_back();
      parts[n++].clear();
    }
    end = std::max(end, block.to);
    parts[n - 1].push_back(b);
  }
  std::sort(parts.begin(), parts.begin() + n,
            [](const Part& x, const Part& y) { return x.size() < y.size(); });
  for (int p = 0; p < n; ++p)
    if (const Outcome o = solve(parts[p], depth + 1); o != Outcome::Placed) return o;
  return Outcome::Placed;
}

// Among the sections with the lowest floor, the one that the fewest blocks can lie on.
int SkylineSearch::choose_section(const Part& part) {
  const int begin = skyline_.block(part.front()).from;
  int end = begin, lowest = Skyline::kNever;
  for (int b : part) {
    end = std::max(end, skyline_.block(b).to);
    lowest = std::min(lowest, skyline_.rest(b));
  }
  std::fill(starts_.begin() + begin, starts_.begin() + end + 1, 0);
  for (int b : part)
    if (skyline_.rest(b) == lowest) {
      ++starts_[skyline_.block(b).from];
      --starts_[skyline_.block(b).to];
    }
  int best = -1, fewest = Skyline::kNever, count = 0;
  for (int s = begin; s < end; ++s) {
    count += starts_[s];
    if (skyline_.use(s) == 0 || skyline_.floor(s) != lowest) continue;
    const int key = 2 * count + (skyline_.slack(s) > 0);
    if (key < fewest) {
      fewest = key;
      best = s;
    }
  }
  return best;
}

// Blocks that can start at the floor of a section, one of each kind, in order of preference.
void SkylineSearch::find_candidates(int section, std::vector<int>& out) const {
  out.clear();
  for (int b : skyline_.covering(section))
    if (!skyline_.is_placed(b) && skyline_.rest(b) == skyline_.floor(section)) out.push_back(b);
  std::sort(out.begin(), out.end(), [&](int a, int b) { return ranks_[a] < ranks_[b]; });
  const auto alike = [&](int a, int b) {
    const Block &x = skyline_.block(a), &y = skyline_.block(b);
    return x.from == y.from && x.to == y.to && x.size == y.size;
  };
  std::size_t kept = 0;
  for (int b : out)
    if (std::none_of(out.begin(), out.begin() + kept, [&](int o) { return alike(o, b); }))
      out[kept++] = b;
  out.resize(kept);
}

// The lowest place above its floor where a block of the section can start: on something that is
// placed, or on a block that is still to come. Adds what that follows from to `why`.
int SkylineSearch::next_floor(const Part& part, int section, Decisions& why) const {
  const int floor = skyline_.floor(section);
  int from = section, to = section + 1, next = Skyline::kNever;
  for (int b : skyline_.covering(section)) {
    if (skyline_.is_placed(b)) continue;
    from = std::min(from, skyline_.block(b).from);
    to = std::max(to, skyline_.block(b).to);
    if (skyline_.rest(b) > floor) next = std::min(next, skyline_.rest(b));
  }
  for (int s = from; s < to; ++s)
    if (skyline_.use(s) > 0) why.insert(skyline_.why_floor(s));
  for (int b : part)
    if (skyline_.block(b).meets({from, to, 0}) && !skyline_.is_placed(b)) {
      why.insert(skyline_.why_rest(b));
      next = std::min(next, skyline_.rest(b) + skyline_.block(b).size);
    }
  return next;
}

// Decision number `depth`: which of the candidates lies on the floor. Nothing where none of them
// can; the frame's `why` then holds what that follows from. Where one fails for no fault of its
// own, so do the others, and the part.
std::optional<Outcome> SkylineSearch::try_candidates(const Part& part, int depth) {
  Frame& f = frames_[depth];
  const std::size_t mark = skyline_.mark();
  for (int b : f.candidates) {
    if (--left_ < 0) return Outcome::OutOfNodes;
    offsets_[b] = skyline_.rest(b);
    Outcome o = Outcome::Impossible;
    if (skyline_.place(b, offsets_[b], depth))
      o = solve_parts(part, b, depth);
    else
      conflict_ = skyline_.conflict();
    if (o != Outcome::Impossible) return o;
    skyline_.take_back(mark);
    if (!conflict_.has(depth)) return o;
    conflict_.erase(depth);
    f.why.insert(conflict_);
  }
  return std::nullopt;
}

// Something starts on the floor of the chosen section, or the floor is higher.
Outcome SkylineSearch::solve(const Part& part, int depth) {
  Frame& f = frames_[depth];
  for (;;) {
    const int section = choose_section(part), floor = skyline_.floor(section);
    find_candidates(section, f.candidates);
    f.why = skyline_.why_floor(section);
    for (int b : skyline_.covering(section))
      if (!skyline_.is_placed(b) && skyline_.rest(b) > floor) f.why.insert(skyline_.why_rest(b));
    if (const auto outcome = try_candidates(part, depth)) return *outcome;
    const int slack = skyline_.slack(section);
    const int next = slack > 0 ? next_floor(part, section, f.why) : floor;
    if (slack == 0 || next - floor > slack) {
      conflict_ = f.why;
      return Outcome::Impossible;
    }
    if (!skyline_.raise(section, next, f.why)) {
      conflict_ = skyline_.conflict();
      return Outcome::Impossible;
    }
  }
}

}  // namespace aloft
