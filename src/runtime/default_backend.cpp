#include "runtime/default_backend.h"

#include <memory>

#include "base/error.h"

namespace aloft {
namespace {
std::unique_ptr<KernelCache>& cache() {
  static std::unique_ptr<KernelCache> c;
  return c;
}
}  // namespace

void set_default_backend(const Backend& backend) {
  if (!cache() || &cache()->backend() != &backend) cache() = std::make_unique<KernelCache>(backend);
}

KernelCache& default_kernels() {
  if (!cache())
    throw EnvironmentError("E0403", "no back end was chosen")
        .advice("include <aloft/aloft.h>, or call set_default_backend(cpu_backend()) first");
  return *cache();
}

const Backend& default_backend() { return default_kernels().backend(); }

}  // namespace aloft
