// mindspore.set_context and jit: whether the networks of build_train_network() and Model run
// compiled or op by op, and on which device.
//
//   ms::set_context({.mode = ms::GRAPH_MODE, .device_target = "CPU"});
//   auto step = ms::jit(train_step);   // compiled in either mode
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "frontend/compile.h"

namespace aloft::ms {

// GRAPH_MODE: compiled; PYNATIVE_MODE: op by op. The bits are the same.
enum Mode { GRAPH_MODE = 0, PYNATIVE_MODE = 1 };  // NOLINT(readability-identifier-naming)

// What is left out stays what it was.
struct Context {
  std::optional<Mode> mode = {};  // PYNATIVE_MODE at the start, as there
  // "CPU", or a device that open_device() knows, in any case; what is made from then on lies there.
  std::optional<std::string> device_target = {};
};

// Of the whole process. UserError E0840 for another mode, E0332 where there is no such device.
void set_context(const Context& context);
// What holds now.
Mode get_mode();

// mindspore.jit: compile() by its name there (frontend/compile.h has its options and errors).
template <class F>
Compiled<F> jit(F f, CompileOptions options = {},
                SourceLocation place = SourceLocation::current()) {
  return compile(std::move(f), std::move(options), place);
}

}  // namespace aloft::ms
