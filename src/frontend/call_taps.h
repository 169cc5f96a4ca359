// What calls of modules take and give, noted while a function is traced or a step is made eagerly.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/asked_taps.h"
#include "frontend/module.h"

namespace aloft {

// While one lives, it sees the calls of modules that this thread makes; the innermost alone does.
class CallTaps {
 public:
  // Receives each value that a call takes or gives, by its tap's name: that of call_tap() behind
  // the prefix that was asked for.
  using Saw =
      std::function<void(const nn::Module& module, const std::string& name, const Tensor& value)>;
  CallTaps(const std::vector<AskedCalls>& asked, Saw saw);
  ~CallTaps();
  CallTaps(const CallTaps&) = delete;
  CallTaps& operator=(const CallTaps&) = delete;

  // Whether one lives, and what it is told: the module was called with x, and gives y.
  static bool is_there();
  static void see(const nn::Module& module, const Tensor& x, const Tensor& y);

 private:
  void note(const nn::Module& module, const Tensor& x, const Tensor& y);

  struct Asked {
    AskedCalls calls;
    std::set<const nn::Module*> modules;     // of the model; none: of any
    std::map<std::string, int> so_far = {};  // calls, by module
  };
  std::vector<Asked> asked_;
  Saw saw_;
  CallTaps* outer_;
};

}  // namespace aloft
