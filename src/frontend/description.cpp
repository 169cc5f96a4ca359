#include "frontend/description.h"

#include "base/error.h"

namespace aloft {

namespace {
thread_local bool only_described = false;
}

OnlyDescribed::OnlyDescribed() : before_(only_described) { only_described = true; }
OnlyDescribed::~OnlyDescribed() { only_described = before_; }

bool is_only_described() { return only_described; }

std::vector<VariablePtr> variables_of(const nn::Module& model, const Optimizer& optimizer) {
  std::vector<VariablePtr> all = model.parameters();
  for (const auto& more : {model.buffers(), optimizer.state()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

void take_values(const std::vector<VariablePtr>& to, const std::vector<VariablePtr>& from) {
  ensure(to.size() == from.size(), "twins have as many variables");
  for (std::size_t i = 0; i < to.size(); ++i) {
    Variable &v = *to[i], &twin = *from[i];
    ensure(v.name == twin.name && v.type == twin.type && !v.buffer, "a description and its twin");
    v.buffer = twin.buffer;
  }
}

void give_memory(const std::vector<VariablePtr>& to) {
  for (const VariablePtr& v : to)
    if (!v->buffer) nn::allocate(*v);
}

}  // namespace aloft
