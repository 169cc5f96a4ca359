// In which order a program's instructions run: those of a stream as they stand in the list, those
// of two streams only as far as one waits for an event behind the other.
#pragma once

#include <optional>
#include <vector>

#include "plan/plan.h"

namespace aloft {

class HappensBefore {
 public:
  // InternalError where an instruction waits for an event that none before it in the list signals,
  // or two signal one.
  explicit HappensBefore(const Program& program);

  // Whether `a` has ended when `b` begins, whatever the streams' speeds.
  bool is_before(int a, int b) const;
  // The places in the list between which `i` may run: all before `first` happen before it, and it
  // happens before all behind `last`. With one stream both are `i`.
  int first(int i) const;
  int last(int i) const;

 private:
  std::vector<int> stream_of_;
  std::vector<std::vector<int>> on_stream_;  // instructions, in order
  // By stream and instruction: the last one of that stream which happens before it, or it itself;
  // -1: none. With one stream it is empty.
  std::vector<std::vector<int>> known_;
};

// Takes away what an instruction waits for anyway, because of its stream's order or of another
// event that it waits for, and the events that nobody waits for then. The order stays.
void drop_implied_waits(Program& program);

// The first instruction that uses a buffer which another one uses in no order with it, one of them
// writing, and that one; nothing where there is no race.
struct Race {
  int a = -1, b = -1;  // instructions
  int buffer = -1;     // that b uses
};
std::optional<Race> find_race(const Program& program, const HappensBefore& order);

}  // namespace aloft
