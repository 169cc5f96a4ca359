// The kernels of another back end, run on a stream of the software device.
#pragma once

#include <memory>

#include "backends/sim/profile.h"
#include "runtime/backend.h"

namespace aloft::sim {

class SimBackend : public Backend {
 public:
  SimBackend(const Backend& underneath, const Profile& profile);

  std::string_view name() const override { return "sim"; }
  std::vector<const Kernel*> candidates(Name op) const override {
    return underneath_.candidates(op);
  }
  std::optional<Refusal> refuses(const CallSpec& call) const override;
  const Features& features() const override { return features_; }
  std::shared_ptr<const Prepared> prepare(const Kernel& kernel,
                                          const CallSpec& call) const override;

 private:
  const Backend& underneath_;
  const Profile profile_;
  Features features_;
};

}  // namespace aloft::sim
