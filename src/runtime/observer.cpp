#include "runtime/observer.h"

#include <algorithm>

#include "runtime/device.h"

namespace aloft {
namespace {
thread_local bool is_in_handler = false;
}  // namespace

void Telling::is_inside(bool is) { is_in_handler = is; }
bool Telling::is_inside() { return is_in_handler; }

std::shared_ptr<const Observers::List> Observers::list() const {
  if (is_empty_.load(std::memory_order_acquire) || Telling::is_inside()) return nullptr;
  const std::lock_guard lock(mutex_);
  return list_;
}

// Lists that runs have taken stay as they are.
void Observers::change(Observer& observer, bool is_there) {
  const std::lock_guard lock(mutex_);
  auto now = list_ ? std::make_shared<List>(*list_) : std::make_shared<List>();
  if (is_there)
    now->push_back(&observer);
  else
    now->erase(std::find(now->begin(), now->end(), &observer));  // it may be there twice
  list_ = now->empty() ? nullptr : std::move(now);
  is_empty_ = list_ == nullptr;
}

Observing::Observing(Device& device, Observer& observer) : device_(device), observer_(observer) {
  device.observers().change(observer, true);
}
Observing::~Observing() { device_.observers().change(observer_, false); }

}  // namespace aloft
