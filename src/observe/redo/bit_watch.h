// Whether a program that runs again on the same state makes the same bits: every operand and every
// result of every instruction, run against run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/observer.h"
#include "types/shape.h"

namespace aloft::redo {

// A tensor that an instruction takes or gives, in a list of all those of a step.
struct TensorBits {
  std::size_t instruction = 0;  // counted over the step, of all programs that it runs
  bool is_result = false;       // else an operand, as it was when the instruction began
  int number = 0;               // of the operands, or of the results
  std::uint64_t hash = 0;       // of its bytes: of the rows that the run has
};

// An instruction, for people.
struct WatchedInstruction {
  std::string program;
  int number = 0;  // in the program's list
  std::string op, kernel, identity, path;
  Phase phase = Phase::Forward;
};

// The bytes of one tensor of a run.
struct SeenTensor {
  std::size_t at = 0;  // in the list of tensors
  TensorType type;     // with lengths as they were
  std::vector<std::byte> bytes;
};

// While attached to a device it watches runs of one step after another. The first step that it
// sees is what later ones are compared with.
class BitWatch : public Observer {
 public:
  // A step is about to run.
  void begin();
  // Where the step that ran last parts from the first one, with its bytes there; nothing: nowhere.
  const std::optional<SeenTensor>& difference() const { return difference_; }
  // Whether it was made of other instructions, which no fault of a processor makes.
  bool has_other_length() const { return seen_ != first_.size(); }
  // Of the steps from here on the bytes of that tensor are kept, with its hash.
  void keep(std::size_t at) { kept_at_ = at; }
  const std::optional<SeenTensor>& kept() const { return kept_; }

  const std::vector<TensorBits>& tensors() const { return first_; }
  const std::vector<WatchedInstruction>& instructions() const { return instructions_; }

  void before(const OpEvent& e) override;
  void after(const OpEvent& e) override;

 private:
  void look(const OpEvent& e, const Buffer& buffer, const TensorType& type, bool is_result, int n);

  bool is_first_ = true;
  std::vector<TensorBits> first_;
  std::vector<WatchedInstruction> instructions_;
  std::size_t seen_ = 0, instruction_ = 0;  // of the step that runs
  std::optional<SeenTensor> difference_, kept_;
  std::optional<std::size_t> kept_at_;
};

// The type with the lengths that a run has: `symbols` of the call, `lengths` in their order.
TensorType bound_type(const TensorType& type, const std::vector<Name>& symbols,
                      std::span<const std::int64_t> lengths);

// How two tensors of one type differ.
struct ElementDifference {
  std::int64_t elements = 0, differing = 0;
  std::int64_t first = 0;           // flat index of the first that differs
  std::vector<std::int64_t> index;  // the same by axes
  std::string value, other;         // there: of the one and of the other
  std::vector<int> bits;            // of the element, that differ there; 0: the lowest
};
ElementDifference elements_that_differ(const TensorType& type, std::span<const std::byte> one,
                                       std::span<const std::byte> other);

}  // namespace aloft::redo
