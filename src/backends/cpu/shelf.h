// What a run of a prepared kernel changes beside its scratch: the library's memory objects, who
// took which piece of work. A prepared kernel is shared by all programs and threads, so these
// things lie on a shelf: whoever needs one takes it, nobody else has it meanwhile, and it goes
// back. Where all are out (two programs run the same product at the same moment), one more is made,
// and stays. Taking and putting back are one atomic exchange each: no lock, and no allocation
// either, but when runs meet for the first time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace aloft::cpu {

template <class T>
class Shelf {
 public:
  using Make = std::function<std::unique_ptr<T>()>;

  Shelf() = default;
  // `ready` of them are made now.
  Shelf(Make make, int ready) : make_(std::move(make)), places_(2 * std::max(1, ready) + 6) {
    place_ = std::make_unique<Place[]>(static_cast<std::size_t>(places_));
    for (int i = 0; i < ready; ++i) place_[i].thing = make_().release();
  }
  ~Shelf() {
    for (int i = 0; i < places_; ++i) delete place_[i].thing.load();
  }
  Shelf(Shelf&& other) noexcept
      : make_(std::move(other.make_)),
        places_(std::exchange(other.places_, 0)),
        place_(std::move(other.place_)) {}
  Shelf& operator=(Shelf&& other) noexcept {
    std::swap(make_, other.make_);
    std::swap(places_, other.places_);
    std::swap(place_, other.place_);
    return *this;
  }

  // One of them, while it lives.
  class Taken {
   public:
    ~Taken() { shelf_.put_back(thing_, near_); }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    T& operator*() const { return *thing_; }
    T* operator->() const { return thing_; }

   private:
    friend class Shelf;
    Taken(const Shelf& shelf, T* thing, int near) : shelf_(shelf), thing_(thing), near_(near) {}
    const Shelf& shelf_;
    T* thing_;
    int near_;
  };

  // `near`: where to look first. Threads of one team that name different places do not meet.
  Taken take(int near = 0) const {
    for (int i = 0; i < places_; ++i) {
      Place& place = place_[(near + i) % places_];
      if (place.thing.load(std::memory_order_relaxed) == nullptr) continue;
      if (T* thing = place.thing.exchange(nullptr, std::memory_order_acq_rel))
        return Taken(*this, thing, near);
    }
    return Taken(*this, make_().release(), near);
  }

 private:
  struct alignas(64) Place {
    std::atomic<T*> thing{nullptr};
  };

  void put_back(T* thing, int near) const {
    for (int i = 0; i < places_; ++i) {
      T* nothing = nullptr;
      if (place_[(near + i) % places_].thing.compare_exchange_strong(nothing, thing,
                                                                     std::memory_order_acq_rel))
        return;
    }
    delete thing;
  }

  Make make_;
  int places_ = 0;
  std::unique_ptr<Place[]> place_;
};

}  // namespace aloft::cpu
