#include "runtime/backend.h"

#include "base/error.h"

namespace aloft {

Choice choose_kernel(const Backend& backend, const CallSpec& call) {
  Choice choice;
  if (const std::optional<Refusal> refusal = backend.refuses(call)) {
    choice.refusals.push_back(std::string(backend.name()) + ": " + refusal->why);
    return choice;
  }
  for (const Kernel* kernel : backend.candidates(call.op)) {
    const std::optional<Refusal> refusal = kernel->accepts(call);
    if (!refusal) {
      choice.kernel = kernel;
      break;
    }
    choice.refusals.push_back(std::string(kernel->name) + ": " + refusal->why);
  }
  return choice;
}

const Kernel* find_kernel(const Backend& backend, Name op, std::string_view name) {
  for (const Kernel* kernel : backend.candidates(op))
    if (kernel->name == name) return kernel;
  return nullptr;
}

Extent extent_of(const Dim& d, const CallSpec& call) {
  if (d.is_constant()) return {d.max(), -1, d.max()};
  const std::vector<Name> symbols = call.symbols();
  for (std::size_t i = 0; i < symbols.size(); ++i)
    if (symbols[i] == d.symbol()) return {d.times(), static_cast<int>(i), d.max()};
  throw InternalError("a dimension's symbol is not among its call's symbols: " + d.str());
}

}  // namespace aloft
