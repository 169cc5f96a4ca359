#include "graph/scope.h"

#include <string>

#include "base/library_files.h"

namespace aloft {
namespace {
thread_local Where top;
thread_local bool pinned = false;
thread_local bool grad_on = true;

void enter(std::string_view name, Policy policy) {
  if (!name.empty()) top.path = top.path ? top.path.str() + "." + std::string(name) : Name(name);
  if (policy) top.policy = policy;
}
}  // namespace

const Where& current_where() { return top; }
bool location_is_pinned() { return pinned; }
bool grad_enabled() { return grad_on; }

Scope::Scope(const Where& where) : saved_(top) { top = where; }
Scope::~Scope() { top = saved_; }

ModuleScope::ModuleScope(std::string_view name, Policy policy)
    : saved_(top), saved_pinned_(pinned) {
  enter(name, policy);
}
ModuleScope::ModuleScope(std::string_view name, const SourceLocation& pin, Policy policy)
    : ModuleScope(name, policy) {
  // Inside a module, Aloft's own calls of modules and ops say nothing to its caller; those of a
  // program's own modules are what he is to look at.
  if (pinned && is_of_library(pin.file_name())) return;
  top.file = pin.file_name();
  top.line = static_cast<int>(pin.line());
  pinned = true;
}
ModuleScope::~ModuleScope() {
  top = saved_;
  pinned = saved_pinned_;
}

NoGrad::NoGrad() : saved_(grad_on) { grad_on = false; }
NoGrad::~NoGrad() { grad_on = saved_; }
WithGrad::WithGrad() : saved_(grad_on) { grad_on = true; }
WithGrad::~WithGrad() { grad_on = saved_; }

}  // namespace aloft
