#include "tasks/task.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace aloft {

#define TASK(name) TaskKind name##_task();
#include "tasks/catalog.inc"
#undef TASK

namespace {
std::deque<TaskKind>& all_kinds() {
  static std::deque<TaskKind> all = {
#define TASK(name) name##_task(),
#include "tasks/catalog.inc"
#undef TASK
  };
  return all;
}
}  // namespace

const std::deque<TaskKind>& task_kinds() { return all_kinds(); }

const TaskKind& add_task(TaskKind kind) {
  const auto refuse = [&](const std::string& saw, const char* need) {
    throw UserError("E0212", "this cannot be a kind of tasks: " + in_quotes(kind.name))
        .saw(saw)
        .need(need);
  };
  if (kind.name.empty()) refuse("no name", "a name of its own");
  if (find_task(kind.name)) refuse(in_quotes(kind.name) + " is there already", "a name of its own");
  if (!kind.takes || !kind.columns || !kind.make)
    refuse("takes, columns or make is null", "all three");
  return all_kinds().emplace_back(std::move(kind));
}

const TaskKind* find_task(std::string_view name) {
  for (const TaskKind& kind : task_kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

const TaskKind& usual_task(const models::ModelFamily& family) {
  for (const TaskKind& kind : task_kinds())
    if (kind.is_usual && kind.takes(family)) return kind;
  throw InternalError("no task takes the family " + std::string(family.name));
}

}  // namespace aloft
