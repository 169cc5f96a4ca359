#include "observe/probe/step_folder.h"

#include <string>

#include "base/text.h"

namespace aloft::probe {

namespace {

constexpr std::string_view kStep = "step";
constexpr const char* kProcess = "rank";

}  // namespace

Path step_folder(const Path& dump, std::int64_t step) {
  return dump / (std::string(kStep) + std::to_string(step)) / kProcess;
}

std::optional<std::int64_t> step_of_folder(std::string_view name) {
  return name.starts_with(kStep) ? parse_int(name.substr(kStep.size())) : std::nullopt;
}

bool is_step_of_dump(const Path& folder) {
  return step_of_folder(folder.filename().string()) && path_exists(folder / kProcess);
}

}  // namespace aloft::probe
