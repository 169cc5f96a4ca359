// Called around instructions when attached, costs one test of a pointer when not. An observer
// reads; it never changes a bit of the result.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace aloft {

class Observer {
 public:
  virtual ~Observer() = default;
  // `instruction` indexes the program's list in the Plan.
  virtual void before(std::string_view program, int instruction) = 0;
  virtual void after(std::string_view program, int instruction, std::span<void* const> out) = 0;
};

}  // namespace aloft
