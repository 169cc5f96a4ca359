// Who looks at what a thread's compiled functions compute (observe::Session): compile() compiles
// them with his taps beside their own while he is there, and tells him of each run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "frontend/asked_taps.h"
#include "frontend/loop_taps.h"

namespace aloft {

class Programs;

class Onlooker {
 public:
  // Called behind each run of a program that was compiled with the taps: what it left can be read
  // until the next run.
  using Ran = std::function<void(const Programs& programs, const std::string& program)>;
  // A pattern of `asked` that means no value of a program asks for nothing there.
  Onlooker(AskedTaps asked, Ran ran);

  const AskedTaps& asked() const { return asked_; }
  // One that no other has: programs that were compiled with its taps are known by it.
  std::uint64_t number() const { return number_; }
  void ran(const Programs& programs, const std::string& program) const { ran_(programs, program); }
  // What the classes of modules are called that were called in a trace, by path.
  void note_class(const nn::Module& module) { classes_[module.path()] = module.kind(); }
  const std::map<std::string, std::string>& classes() const { return classes_; }
  // By what a program updates, in its order; what an earlier program of the name did is forgotten.
  void note_updates(const Programs& programs, const std::string& program,
                    std::vector<UpdatedBy> by) {
    updates_[{&programs, program}] = std::move(by);
  }
  const std::vector<UpdatedBy>& updates(const Programs& programs, const std::string& program) {
    return updates_[{&programs, program}];
  }

 private:
  AskedTaps asked_;
  Ran ran_;
  std::uint64_t number_;
  std::map<std::string, std::string> classes_;
  std::map<std::pair<const Programs*, std::string>, std::vector<UpdatedBy>> updates_;
};

// This thread's; null where nobody looks.
Onlooker* current_onlooker();

// `onlooker` is this thread's while one lives.
class OnlookerScope {
 public:
  explicit OnlookerScope(Onlooker* onlooker);
  ~OnlookerScope();
  OnlookerScope(const OnlookerScope&) = delete;
  OnlookerScope& operator=(const OnlookerScope&) = delete;

 private:
  Onlooker* saved_;
};

}  // namespace aloft
