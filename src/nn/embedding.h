// Rows of a learned table, chosen by integers.
#pragma once

#include "nn/layer.h"

namespace aloft::nn {

// How the table begins; the default is torch.nn.Embedding's.
struct EmbeddingOptions {
  Init weight_init = Init::normal(1);  // of the table
  double factor = 1;                   // of the rows that it gives; the table itself stays
};

// Row i of the table for the integer i, times a factor. Parameter: weight [count, dim].
class Embedding : public Layer {
 public:
  static constexpr std::string_view kKind = "Embedding";
  std::string_view kind() const override { return kKind; }

  // A table of `count` rows of `dim` features. UserError E0210 unless both are positive.
  Embedding(Module& parent, std::string_view name, std::int64_t count, std::int64_t dim,
            const EmbeddingOptions& options = {});

  Tensor operator()(Operand ids) const;  // integers [...] -> [..., dim]; ops/embedding.h

  VariablePtr weight;  // [count, dim]

 private:
  double factor_;
};

}  // namespace aloft::nn
