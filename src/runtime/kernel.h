// A kernel: says whether it takes a call, is prepared once for it in a process, runs many times.
// prepare() may allocate, build library primitives and throw; run() may do none of these, but for a
// back end's own wrapping of another one's kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "types/call.h"

namespace aloft {

// Why a kernel does not take a call: an expected outcome, hence a value.
struct Refusal {
  std::string why;
};

// A dimension whose value is known when the program runs. `slot` indexes RunArgs::symbols.
struct Extent {
  std::int64_t factor = 0;
  int slot = -1;  // -1: constant
  std::int64_t bound = 0;
  std::int64_t at(std::span<const std::int64_t> symbols) const {
    return slot < 0 ? factor : factor * symbols[slot];
  }
};

class Stream;

// One run: addresses in the device's memory. Buffers are 64-byte aligned and dense, row-major at
// the symbols' bounds. A symbol may only be the outermost dimension's (or a factor of it after a
// flatten), so actual data is a dense prefix; bytes past the prefix are scratch and may hold
// anything, NaN included.
struct RunArgs {
  std::span<void* const> in;
  std::span<void* const> out;
  void* scratch = nullptr;                  // Prepared::scratch_bytes() bytes, 64-byte aligned
  std::span<const std::int64_t> symbols{};  // in the order of CallSpec::symbols()
  Stream* stream = nullptr;                 // where to; kernels that work at once need none
  std::string_view name{};                  // of the instruction; perhaps none of an eager call
};

// What a prepared kernel is to loops that its back end fuses of several. The back end derives its
// own class from it, and alone looks into that.
class LoopPart {
 public:
  virtual ~LoopPart() = default;
};

class Prepared {
 public:
  virtual ~Prepared() = default;
  virtual std::size_t scratch_bytes() const { return 0; }
  // Which of its ways the kernel goes for this call, and why, in words for people; empty where it
  // has only one.
  virtual std::string how() const { return {}; }
  // Whether the bound of a length decides how sums are cut, so that a run of fewer rows may have
  // other bits than a call with just so many. compile() then makes a program for each number.
  virtual bool is_cut_by_bound() const { return false; }
  // Null where no fused loop takes it.
  virtual const LoopPart* loop_part() const { return nullptr; }
  // Same inputs, same bits, on any number of threads. One prepared kernel is shared by every
  // program and thread of the process, and runs of it overlap: a run writes to its outputs and its
  // scratch and to nothing else. On an asynchronous device it hands the work over to args.stream:
  // spans and name may be gone when it returns, the memory stays until the work is done.
  virtual void run(const RunArgs& args) const = 0;
};

struct Kernel {
  std::string_view name;  // "cpu.softmax"
  Name op;
  // nullopt: I take it.
  std::optional<Refusal> (*accepts)(const CallSpec&);
  std::unique_ptr<Prepared> (*prepare)(const CallSpec&);
  // (input, output) pairs that may share one buffer: the kernel reads each element of the input
  // before, or at the moment when, it writes the same element of the output.
  std::vector<std::pair<int, int>> (*in_place)(const CallSpec&) = nullptr;
  // The output is the input's memory seen with another shape: no instruction is executed.
  bool is_view = false;
  // The forms of products that it computes where the call asks for one of them; a kernel without
  // computes what it is asked for plainly.
  std::span<const ProductForm> forms = {};
};

// How the kernel computes the products of a call that it takes.
inline ProductForm form_by(const Kernel& kernel, const CallSpec& call) {
  return is_among(call.form, kernel.forms) ? call.form : ProductForm::Plain;
}

inline std::optional<Refusal> always(const CallSpec&) { return std::nullopt; }

// The extent of `d`, for a kernel prepared for `call`.
Extent extent_of(const Dim& d, const CallSpec& call);

}  // namespace aloft
