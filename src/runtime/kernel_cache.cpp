#include "runtime/kernel_cache.h"

#include "base/error.h"

namespace aloft {

std::string call_key(const CallSpec& call) {
  std::string key = call.op.str() + call.attrs.str() + std::string(name_of(call.form)) + "(";
  for (const TensorType& t : call.in) key += t.str() + ",";
  key += ")->";
  for (const TensorType& t : call.out) key += t.str() + ",";
  return key + "#" + std::to_string(call.threads);
}

namespace {

// Of results without an element, whatever the kernel: it would go over any number of rows of
// nothing, one by one.
class NothingToDo : public Prepared {
 public:
  void run(const RunArgs&) const override {}
};

bool gives_nothing(const CallSpec& call) {
  for (const TensorType& t : call.out)
    if (t.shape.max_numel() > 0) return false;
  return !call.out.empty();
}

}  // namespace

std::shared_ptr<const Prepared> prepare(const Backend& backend, const Kernel& kernel,
                                        const CallSpec& call) {
  if (gives_nothing(call)) return std::make_shared<NothingToDo>();
  return backend.prepare(kernel, call);
}

PreparedKernel KernelCache::get(const CallSpec& call) {
  const std::string key = call_key(call);
  std::lock_guard lock(mutex_);
  if (const auto it = prepared_.find(key); it != prepared_.end()) return it->second;
  Choice choice = choose_kernel(backend_, call);
  PreparedKernel p{choice.kernel, nullptr, std::move(choice.refusals)};
  if (p.kernel && !p.kernel->is_view) p.prepared = prepare(backend_, *p.kernel, call);
  return prepared_.emplace(key, std::move(p)).first->second;
}

PreparedKernel KernelCache::get(const CallSpec& call, const std::string& kernel) {
  if (PreparedKernel usual = get(call); usual.kernel && usual.kernel->name == kernel) return usual;
  const std::string key = kernel + " " + call_key(call);
  std::lock_guard lock(mutex_);
  if (const auto it = prepared_.find(key); it != prepared_.end()) return it->second;
  const Kernel* found = find_kernel(backend_, call.op, kernel);
  const std::optional<Refusal> refusal =
      found ? found->accepts(call) : Refusal{"there is no kernel of that name"};
  if (refusal)
    throw EnvironmentError("E0402", "the plan's kernel '" + kernel + "' cannot run here")
        .saw(refusal->why)
        .advice("compile the model again on this machine");
  PreparedKernel p{found, prepare(backend_, *found, call), {}};
  return prepared_.emplace(key, std::move(p)).first->second;
}

}  // namespace aloft
