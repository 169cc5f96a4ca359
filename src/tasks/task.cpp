#include "tasks/task.h"

#include "base/error.h"

namespace aloft {

#define TASK(name) TaskKind name##_task();
#include "tasks/catalog.inc"
#undef TASK

const std::vector<TaskKind>& task_kinds() {
  static const std::vector<TaskKind> all = {
#define TASK(name) name##_task(),
#include "tasks/catalog.inc"
#undef TASK
  };
  return all;
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
