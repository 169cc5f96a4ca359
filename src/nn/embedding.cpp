#include "nn/embedding.h"

#include "ops/binary.h"
#include "ops/embedding.h"

namespace aloft::nn {

Embedding::Embedding(Module& parent, std::string_view name, std::int64_t count, std::int64_t dim,
                     const EmbeddingOptions& options)
    : Layer(parent, name), factor_(options.factor) {
  need_positive(count, label("count"));
  need_positive(dim, label("dim"));
  weight = new_parameter("weight", {count, dim}, options.weight_init);
}

Tensor Embedding::operator()(Operand ids) const {
  return call(ids, [&](const Tensor& t) {
    const Tensor rows = embedding(use(weight), t);
    return factor_ == 1 ? rows : rows * factor_;
  });
}

}  // namespace aloft::nn
