// What is kept of a tensor so that it can be told from another one without it: its extremes, as
// msprobe has them, and hashes of its values, whatever type holds them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "types/dtype.h"

namespace aloft::config_check {

struct TensorHashes {
  std::uint64_t ordered = 0;     // of the values in their order
  std::uint64_t any_order = 0;   // of the values alone
  std::uint64_t transposed = 0;  // of a matrix: `ordered` of its transpose; else 0
  // Of each index of the first axis the hash of what lies there. Of batches alone: a row is an
  // example. Empty: not kept.
  std::vector<std::uint64_t> rows = {};
  std::uint64_t any_rows = 0;  // of the rows, in any order
  friend bool operator==(const TensorHashes&, const TensorHashes&) = default;
};

struct TensorFacts {
  double max = 0, min = 0, mean = 0, norm = 0;  // in double; NaN of no element
  std::vector<std::int64_t> shape = {};         // empty with no hashes: not known
  std::optional<TensorHashes> hashes = {};      // msprobe keeps none
};

struct NamedTensor {
  std::string name;
  TensorFacts facts;
  // Of a projection whether it lies as [in, out]; nothing where nobody knows.
  std::optional<bool> is_turned = {};
};

// Takes a tensor's values in pieces, in order. Values are hashed as doubles: one in bf16 and the
// same in f32 have one hash; so have 0 and -0, and all NaN.
class TensorReader {
 public:
  // `keep_rows`: TensorHashes::rows is wanted.
  explicit TensorReader(std::vector<std::int64_t> shape, bool keep_rows = false);
  // All pieces together have as many values as the shape. `rests`: of whole numbers that no double
  // is, what each is beyond its value (compare/elements.h); empty: nothing.
  void add(std::span<const double> values, std::span<const double> rests = {});
  TensorFacts facts() const;

 private:
  TensorFacts facts_;
  TensorHashes hashes_;
  bool keep_rows_;
  std::uint64_t row_elements_ = 0, rows_ = 0, at_ = 0;  // rows_: of a matrix alone
  std::uint64_t row_ = 0, in_row_ = 0, row_hash_ = 0;
  // As they are; and scaled, of f64 whose sum, or whose squares, are no doubles.
  double sum_ = 0, scaled_sum_ = 0;
  double squares_ = 0, of_large_ = 0, of_small_ = 0;
};

// Of elements as they lie, row-major.
TensorFacts facts_of(DType type, const std::vector<std::int64_t>& shape,
                     std::span<const std::byte> bytes, bool keep_rows = false);

// How two tensors of hashes stand to each other.
enum class Likeness { Same, Transposed, RowsMoved, Permuted, Other };
Likeness likeness(const TensorFacts& a, const TensorFacts& b);

// By how much all of b's figures are a's times the same number; nothing where they are not, or
// where that number is 1.
std::optional<double> scale_between(const TensorFacts& a, const TensorFacts& b);

}  // namespace aloft::config_check
