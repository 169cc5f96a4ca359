// Rows of a table chosen by integers, and the gradient that adds rows back.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct EmbeddingGradAttrs {
  std::int64_t rows = 0;
  static constexpr auto fields() {
    return std::tuple{field("rows", &EmbeddingGradAttrs::rows, "number of rows of the table")};
  }
};

// table [V, D], ids of any integer shape -> [ids..., D]. An id outside [0, V) reads nothing and
// gives a row of NaN, which no loss survives unnoticed; whoever feeds ids checks their range first.
Tensor embedding(Operand table, Operand ids);
// dy [ids..., D] added into a table [rows, D] of zeros, in the order of the ids; an id outside the
// table adds nothing. The sum of a row is accumulated in fp32 or wider.
Tensor embedding_grad(Operand dy, Operand ids, std::int64_t rows);

}  // namespace aloft
