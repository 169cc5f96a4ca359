// Rows of a learned table, chosen by integers.
#pragma once

#include "nn/layer.h"

namespace aloft::nn {

struct EmbeddingOptions {
  Init weight_init = Init::normal(1);
};

// Parameter: weight [count, dim].
class Embedding : public Layer {
 public:
  Embedding(Module& parent, std::string_view name, std::int64_t count, std::int64_t dim,
            const EmbeddingOptions& options = {});

  Tensor operator()(Operand ids) const;  // integers [...] -> [..., dim]

  VariablePtr weight;
};

}  // namespace aloft::nn
