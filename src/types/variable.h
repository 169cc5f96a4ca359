// A named tensor that outlives every program: a parameter, a moment, a running statistic, the
// loss scaler, the random state. Graphs refer to it by name; a Plan decides where it lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/name.h"
#include "types/shape.h"
#include "types/space.h"

namespace aloft {

class Buffer;

// What a variable is for: which precision, memory and checkpoints treat it by.
enum class StateClass : std::uint8_t {
  Parameter,  // trained, or frozen where requires_grad is false
  Optimizer,  // moments, master weights
  Gradient,   // sums over micro-batches
  Buffer,     // running statistics, caches: part of the model, not trained
  Control,    // loss scale, counters, random state
};

// "parameter", "optimizer", ...
constexpr std::string_view name_of(StateClass c) {
  constexpr std::string_view names[] = {"parameter", "optimizer", "gradient", "buffer", "control"};
  return names[static_cast<int>(c)];
}

// One such tensor. Its values are read and written by models/state_dict.h.
struct Variable {
  Name name;                               // full, such as "h.3.attn.proj.weight"
  TensorType type;                         // constant shape
  StateClass cls = StateClass::Parameter;  // what it is for
  bool requires_grad = true;               // Parameter only
  bool is_norm = false;                    // a norm's scale or shift: kept in fp32 by O1 and O2
  Layout layout = Layout::Dense;           // what its bytes mean
  Home home = {};  // where programs keep it; set before the first of them takes it in
  // type.max_bytes() bytes, dense, row-major, reached by its read() and write() (runtime/buffer.h);
  // null while it is only described. Programs that take it in give it another.
  std::shared_ptr<Buffer> buffer;
  // Of a parameter in a low type: the fp32 value that is trained (f32), or what of it the low one
  // lacks (u8, scalar/split_float.h). Null where the variable is its own.
  std::shared_ptr<Variable> master = nullptr;
  // How often the values were written. Whoever writes them raises it: an eager session knows by it
  // that what it read, or computed from what it read, is out of date.
  std::uint64_t version = 0;
  // Something else stands in its place for a while (frontend/averaged_weights.h): no program may
  // write it meanwhile.
  bool is_lent = false;

  // Its values, copied: as f32 where they are floats (UserError E0323), of a parameter in a low
  // type the low ones (models/state_dict.h gives masters); as they are stored. UserError E0325
  // without a buffer.
  std::vector<float> to_floats() const;
  std::vector<std::byte> bytes() const;
};

// How modules, optimizers and programs hold one in common.
using VariablePtr = std::shared_ptr<Variable>;

}  // namespace aloft
