// A tree search over the skyline: the lowest floor is filled first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/skyline.h"

namespace aloft {

enum class Outcome { Placed, Impossible, OutOfNodes };

class SkylineSearch {
 public:
  SkylineSearch(const std::vector<Block>& blocks, int sections, int capacity);

  // `ranks`: blocks of lower rank are tried first. `nodes`: the most placements to try; what is
  // left of them afterwards.
  Outcome run(const std::vector<int>& ranks, std::int64_t& nodes);
  const std::vector<int>& offsets() const { return offsets_; }

 private:
  using Part = std::vector<int>;  // blocks still to be placed, by their first section
  struct Frame {
    std::vector<int> candidates;
    std::vector<Part> parts;
    Decisions why;
  };

  Outcome solve_parts(const Part& all, int skip, int depth);
  Outcome solve(const Part& part, int depth);
  std::optional<Outcome> try_candidates(const Part& part, int depth);
  int choose_section(const Part& part);
  void find_candidates(int section, std::vector<int>& out) const;
  int next_floor(const Part& part, int section, Decisions& why) const;

  Skyline skyline_;
  std::vector<int> ranks_, offsets_, starts_;
  std::vector<Frame> frames_;
  Decisions conflict_;  // of what failed last: these decisions together leave no solution
  std::int64_t left_ = 0;
};

}  // namespace aloft
