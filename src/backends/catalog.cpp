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

namespace {
// The device that is meant by a name that is none: "sim:910B3" by "910B3" or "SIM:910b3".
std::string meant_by(std::string_view name) {
  std::vector<std::string> all;
  for (const DeviceKind& kind : device_kinds()) {
    all.emplace_back(kind.name);
    all.insert(all.end(), kind.variants.begin(), kind.variants.end());
  }
  const std::string plain = lower(name);
  for (const std::string& one : all)
    if (lower(one) == plain || lower(one).ends_with(":" + plain)) return one;
  return nearest_name(plain, all);
}
}  // namespace

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
  const std::string near = meant_by(name);
  throw UserError("E0332", "there is no device " + in_quotes(std::string(name)))
      .need("one of: " + known + ", or one of their variants, such as sim:910B3")
      .advice(near.empty() ? "aloft devices lists them" : near + "; aloft devices lists them");
}

Device& chosen_device() {
  const char* name = std::getenv("ALOFT_DEVICE");
  if (!name || !*name) return open_device("cpu");
  try {
    return open_device(name);
  } catch (UserError& e) {
    e.add_line("at", "the environment variable ALOFT_DEVICE");
    throw;
  }
}

}  // namespace aloft
