#include "runtime/observer.h"

#include "runtime/device.h"

namespace aloft {

std::shared_ptr<const Observers::List> Observers::list() const {
  if (is_empty_.load(std::memory_order_acquire)) return nullptr;
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
    std::erase(*now, &observer);
  list_ = now->empty() ? nullptr : std::move(now);
  is_empty_ = list_ == nullptr;
}

Observing::Observing(Device& device, Observer& observer) : device_(device), observer_(observer) {
  device.observers().change(observer, true);
}
Observing::~Observing() { device_.observers().change(observer_, false); }

}  // namespace aloft
