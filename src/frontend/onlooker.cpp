#include "frontend/onlooker.h"

#include <atomic>
#include <utility>

namespace aloft {

namespace {

thread_local Onlooker* current = nullptr;

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

Onlooker::Onlooker(AskedTaps asked, Ran ran)
    : asked_(std::move(asked)), ran_(std::move(ran)), number_(next_number()) {}

Onlooker* current_onlooker() { return current; }

OnlookerScope::OnlookerScope(Onlooker* onlooker) : saved_(std::exchange(current, onlooker)) {}
OnlookerScope::~OnlookerScope() { current = saved_; }

}  // namespace aloft
