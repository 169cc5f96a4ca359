// Where in the user's program an op call stands: module path, source line, phase, precision policy.
// A thread-local stack; modules and passes push onto it, every emitted node copies the top.
#pragma once

#include <string_view>

#include "base/name.h"
#include "base/source_location.h"
#include "precision/policy.h"
#include "types/phase.h"

namespace aloft {

struct Where {
  Name file;  // the user's source file
  int line = 0;
  Name path;      // module path, "h.3.attn.qkv"
  Name pass;      // the pass that made the node; empty: traced from the user's program
  Name reason;    // why the pass made it
  Policy policy;  // the precision recipe that governs the node, if any
  Name listed;    // the parameter that the node reads and the recipe lists; empty: none
  Phase phase = Phase::Forward;

  friend bool operator==(const Where&, const Where&) = default;
};

// The innermost scope's Where.
const Where& current_where();

// Replaces the current Where until the end of the block.
class Scope {
 public:
  explicit Scope(const Where& where);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Where saved_;
};

// Enters the module `name` below the current path. `pin` is the user's call of a library module:
// nodes emitted inside carry that line instead of one inside the library.
class ModuleScope {
 public:
  explicit ModuleScope(std::string_view name, Policy policy = {});
  ModuleScope(std::string_view name, const SourceLocation& pin, Policy policy = {});
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  Where saved_;
  bool saved_pinned_;
};

// True while a library module has pinned the source line.
bool location_is_pinned();

// While one lives, what is computed has no gradient: eager calls are not recorded, and in a traced
// function no gradient passes them. The innermost of NoGrad and WithGrad counts.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool saved_;
};
class WithGrad {
 public:
  WithGrad();
  ~WithGrad();
  WithGrad(const WithGrad&) = delete;
  WithGrad& operator=(const WithGrad&) = delete;

 private:
  bool saved_;
};
bool grad_enabled();

}  // namespace aloft
