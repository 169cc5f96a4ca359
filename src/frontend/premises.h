// What a program was traced under: whatever its function found outside of its arguments and
// variables' values, and its graph holds as it was then. Modes of modules (Module::train),
// parameters that are trained (requires_grad), types and precisions, micro-batches a step, the
// thread whose random state the program advances. A program serves a call only while
// all of it is as it was; else compile() traces again.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/name.h"
#include "precision/policy.h"
#include "types/variable.h"

namespace aloft {

class Premises {
 public:
  // Begins with where the caller stands: module path and precision policy.
  Premises();

  // The function has read `*at`.
  template <class T>
  void found(std::shared_ptr<const T> at) {
    static_assert(std::has_unique_object_representations_v<T> &&
                  (sizeof(T) == 1 || sizeof(T) == 8));
    const T* const value = at.get();
    add(std::move(at), value, sizeof(T));
  }
  // The same of a variable that may be there later, and is not.
  void found_none(std::shared_ptr<const VariablePtr> at);
  bool has_found(const void* at) const;
  // The function is about to set what is there: what it reads of it from here on is its own, and
  // restore() knows what was there.
  template <class T>
  void sets(std::shared_ptr<T> at) {
    static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 1 || sizeof(T) == 8));
    remember(std::move(at), sizeof(T));
  }
  // The function has asked for gradients, which a caller under NoGrad may not, unless the function
  // sees to that itself.
  void found_gradients() { needs_gradients_ = has_gradients_; }
  // The function reads or advances the random state of the thread that traces it.
  void found_random_state();

  bool hold() const;
  // Makes what the function has set what it was before, for another attempt to trace it.
  void restore() const;

 private:
  struct Fact {
    std::shared_ptr<const void> at;
    std::uint64_t was = 0;  // in its first `bytes`
    std::size_t bytes = 0;  // 1 or 8; 0: it is a VariablePtr, which was null
  };
  struct Setting {
    std::shared_ptr<void> at;
    std::uint64_t before = 0;
    std::size_t bytes = 0;
  };
  void add(std::shared_ptr<const void> at, const void* value, std::size_t bytes);
  void remember(std::shared_ptr<void> at, std::size_t bytes);

  Name path_;
  Policy policy_;
  bool has_gradients_;  // where tracing began
  bool needs_gradients_ = false;
  VariablePtr random_state_;  // null: any thread's
  std::vector<Fact> facts_;
  std::vector<const void*> own_;
  std::vector<Setting> settings_;
};

// Where this thread's innermost trace keeps its premises; null outside of one, and in traces whose
// caller answers for them (Programs).
Premises* premises_of_trace();

// Makes `premises` those of the traces that begin and end while this lives.
class PremisesScope {
 public:
  explicit PremisesScope(Premises* premises);
  ~PremisesScope();
  PremisesScope(const PremisesScope&) = delete;
  PremisesScope& operator=(const PremisesScope&) = delete;

 private:
  Premises* saved_;
};

// Tells a trace in progress that `member`, a part of what `owner` owns, is read, and reads it.
template <class Owner, class T>
const T& read_premise(const std::shared_ptr<Owner>& owner, const T& member) {
  if (Premises* p = premises_of_trace()) p->found(std::shared_ptr<const T>(owner, &member));
  return member;
}

// Sets `member`, a part of what `owner` owns, and tells a trace in progress.
template <class Owner, class T>
void set_premise(const std::shared_ptr<Owner>& owner, T& member, T value) {
  if (Premises* p = premises_of_trace()) p->sets(std::shared_ptr<T>(owner, &member));
  member = value;
}

}  // namespace aloft
