// Inside: how gradients_of() tells an emitter that gradients of its gradients may be asked for.
#pragma once

namespace aloft {

// While one lives, variable_gradients() of this thread gives values that are recorded, and what it
// passes is not used up.
class KeepGraph {
 public:
  explicit KeepGraph(bool keep);
  ~KeepGraph();
  KeepGraph(const KeepGraph&) = delete;
  KeepGraph& operator=(const KeepGraph&) = delete;
  static bool is_asked();

 private:
  bool saved_;
};

}  // namespace aloft
