// A program of element-wise steps, run a tile at a time: each input is opened once, each output
// closed once, and what lies between stays in the first cache, rounded to its own type exactly as
// if it had been written and read again.
#pragma once

#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "backends/cpu/elements/elementwise.h"
#include "backends/cpu/rows/reduction.h"
#include "types/step_program.h"

namespace aloft::cpu {

class TileProgram {
 public:
  // What runs `program` on inputs of these types, or why nothing does.
  static std::variant<TileProgram, Refusal> make(const CallSpec& call, const StepProgram& program);

  // The type of every step's result has this shape.
  const Shape& shape() const { return shape_; }
  DType dtype(int value) const { return dtypes_[value]; }
  const Operands& operands() const { return operands_; }
  std::int64_t cost() const { return cost_; }  // of one element
  bool is_in_f32() const;                      // every step, else some are in double

  // A sum over leading axes, of what a step gives.
  struct Sum {
    int value = 0;   // what is summed
    int output = 0;  // of the call
    DType dtype = DType::F32;
  };
  const std::vector<Sum>& sums() const { return sums_; }
  const ColumnFold& fold() const { return *fold_; }  // where there are sums
  // Whether output `out` is a step's own result, element by element.
  bool is_dense(int out) const { return out_steps_[out] >= 0; }

  // Whether output `out` may be written where input `in` lies: same type and shape, and whoever
  // reads the input has read it by then.
  bool may_share(int in, int out) const;

  // The first cache's worth of one thread: lives on its stack.
  class Tiles;
  // Elements [begin, begin + n) of the flattened shape, n <= operands().tile_at(begin). `out[i]` is
  // where output i's elements belong.
  void run(Tiles& tiles, std::int64_t begin, std::int64_t n, void* const* out) const;
  // The tile of a value that is summed, behind run().
  static const float* tile_of(const Tiles& tiles, int value);

 private:
  struct Step {
    ElementwiseCode code;
    bool in_f32 = true;     // computes in f32, else in double
    bool in_low = false;    // computes the call's own inputs, all of its low type, where they lie
    std::vector<int> in;    // values
    int random_state = -1;  // the input of a step that draws
    int output = -1;        // of the call, or -1
    int slot = 0;           // where its tile lies, unless that is the output itself
    bool is_read = false;
    DType dtype = DType::F32;
  };

  static constexpr int kSlots = 12;

  TileProgram(const CallSpec& call, Shape shape);
  std::optional<Refusal> add_step(const CallSpec& call, const StepProgram& program, int step);
  std::optional<Refusal> add_sum(const CallSpec& call, const StepProgram& program, int step);
  std::optional<Refusal> bind_outputs(const CallSpec& call, const StepProgram& program);
  void find_slots(const StepProgram& program);
  void find_low_steps();
  template <class T>
  void run_low(const Step& step, TileOf<T> tile, Tiles& tiles, int value, std::int64_t begin,
               std::int64_t n, void* place) const;
  template <class T>
  void run_step(const Step& step, Tiles& tiles, int value, std::int64_t begin, std::int64_t n,
                void* place) const;
  template <class T>
  void draw(const Step& step, Tiles& tiles, std::int64_t begin, std::int64_t n, const T* x,
            T* result) const;

  Shape shape_;
  Operands operands_;
  int inputs_ = 0;
  std::vector<DType> dtypes_;   // of all values
  std::vector<int> last_read_;  // of all values: the step, or -1
  // Of each input: whether a step reads its tile; whether one reads it where it lies.
  std::vector<bool> is_opened_, is_read_in_low_;
  std::vector<Step> steps_;
  std::vector<TensorType> in_, out_;
  std::vector<int> out_steps_;  // of each output; -1: a sum
  std::vector<Sum> sums_;
  std::optional<ColumnFold> fold_;
  std::int64_t cost_ = 0;
};

class TileProgram::Tiles {
 public:
  Tiles(const TileProgram& program, const RunArgs& args)
      : args_(args), reader_(program.operands_, args) {}

 private:
  friend class TileProgram;
  const RunArgs& args_;
  Reader reader_;
  // Where each value's tile lies: floats where its type fits, else doubles.
  std::array<const void*, kMaxOperands + kMostSteps> at_{};
  alignas(64) double slots_[kSlots][kTile];
  alignas(64) double widened_[4][kTile];  // operands of a step in double whose tiles are floats
  alignas(64) double raw_[kTile];         // a result in its own type
  // For a step that draws; its first word may be up to three before the tile's.
  alignas(64) std::uint32_t words_[kTile + 64];
};

}  // namespace aloft::cpu
