#include "mindspore/context.h"

#include <atomic>

#include "base/error.h"
#include "base/text.h"
#include "frontend/eager.h"
#include "runtime/current_device.h"

namespace aloft::ms {
namespace {
std::atomic<Mode> current_mode{PYNATIVE_MODE};
}  // namespace

void set_context(const Context& context) {
  if (context.mode && *context.mode != GRAPH_MODE && *context.mode != PYNATIVE_MODE)
    throw UserError("E0840", "the context has no such mode")
        .saw(std::to_string(static_cast<int>(*context.mode)))
        .need("GRAPH_MODE or PYNATIVE_MODE");
  if (context.device_target) {
    // Names of devices are written small, but for what stands behind a colon: "sim:910B3".
    std::string name = *context.device_target;
    const std::size_t kind = std::min(name.find(':'), name.size());
    name = lower(name.substr(0, kind)) + name.substr(kind);
    use_device(device_named(name));
  }
  if (context.mode) current_mode = *context.mode;
}

Mode get_mode() { return current_mode; }

}  // namespace aloft::ms
