// Kernels prepared once and shared: by the twelve equal layers of a model, by the programs of a
// Plan, and by eager calls, which therefore give the same bits as compiled ones.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/backend.h"

namespace aloft {

struct PreparedKernel {
  const Kernel* kernel = nullptr;            // null: no kernel takes the call
  std::shared_ptr<const Prepared> prepared;  // null for views
  std::vector<std::string> refusals;
};

// What computes a call by this kernel; where its results have no element, nothing at all.
std::shared_ptr<const Prepared> prepare(const Backend& backend, const Kernel& kernel,
                                        const CallSpec& call);

class KernelCache {
 public:
  explicit KernelCache(const Backend& backend) : backend_(backend) {}
  const Backend& backend() const { return backend_; }
  // The first kernel that takes the call, prepared. Thread-safe.
  PreparedKernel get(const CallSpec& call);
  // A kernel by name: what a Plan recorded. EnvironmentError E0402 where this machine's back end
  // has no such kernel or the kernel refuses the call.
  PreparedKernel get(const CallSpec& call, const std::string& kernel);

 private:
  const Backend& backend_;
  std::mutex mutex_;
  std::unordered_map<std::string, PreparedKernel> prepared_;
};

// One line that determines a call: op, attributes, form of products, types, threads.
std::string call_key(const CallSpec& call);

}  // namespace aloft
