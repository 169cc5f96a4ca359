#include "backends/catalog.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "base/error.h"
#include "base/text.h"

namespace aloft {

#define BACKEND(name) DeviceKind name##_kind();
#include "backends/catalog.inc"
#undef BACKEND

const std::vector<DeviceKind>& device_kinds() {
  static const std::vector<DeviceKind> kinds = {
#define BACKEND(name) name##_kind(),
#include "backends/catalog.inc"
#undef BACKEND
  };
  return kinds;
}

Device& open_device(std::string_view name) {
  static std::mutex mutex;
  static auto& open = *new std::map<std::string, Device*, std::less<>>;
  const std::lock_guard lock(mutex);
  if (const auto it = open.find(name); it != open.end()) return *it->second;
  std::string known;
  for (const DeviceKind& kind : device_kinds()) {
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
    if (name.substr(0, std::min(name.find_first_of(":,"), name.size())) != kind.name) continue;
    Device& device = kind.open(name);
    open.emplace(name, &device);
    return device;
  }
  throw UserError("E0332", "there is no device " + in_quotes(std::string(name)))
      .need("one of: " + known)
      .advice("aloft devices lists them");
}

Device& chosen_device() {
  const char* name = std::getenv("ALOFT_DEVICE");
  return open_device(name && *name ? name : "cpu");
}

}  // namespace aloft
