// Rows of a table chosen by integers, and the gradient that adds rows back.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct EmbeddingGradAttrs {
  std::int64_t rows = 0;
  static constexpr auto fields() {
    return FieldList{field("rows", &EmbeddingGradAttrs::rows, "number of rows of the table")};
  }
};

// table [V, D], ids of any integer shape -> [ids..., D]. An id outside [0, V) is UserError
// E0214 in eager mode; a compiled program gives a row of NaN, and skips a step that meets it.
Tensor embedding(Operand table, Operand ids);

// Inside: dy [ids..., D] added into a table [rows, D] of zeros, in the order of the ids; an id
// outside the table adds nothing. The sum of a row is accumulated in fp32 or wider.
Tensor embedding_grad(Operand dy, Operand ids, std::int64_t rows);
// x + embedding_grad(dy, ids, rows of x), which touches only the rows that an id names. A row that
// none names keeps its bits, so that a -0 stays where adding 0 would have made it +0.
Tensor embedding_grad_add(Operand x, Operand dy, Operand ids);

}  // namespace aloft
