#include "mindspore/losses.h"

#include "base/error.h"
#include "base/text.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/cross_entropy.h"
#include "ops/losses.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/unary.h"

namespace aloft::ms {

Tensor SoftmaxCrossEntropyWithLogits::operator()(const Tensor& logits, const Tensor& labels) const {
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    throw UserError("E0840", "a loss has no such reduction")
        .saw(in_quotes(reduction))
        .need("mean, sum or none");
  if (sparse && reduction == "mean") return cross_entropy(logits, labels);
  const Tensor log_p = log_softmax(cast(logits, DType::F32), -1);
  if (sparse) return nll_loss(log_p, labels, {.reduction = reduction});
  const Tensor rows = neg(sum(cast(labels, DType::F32) * log_p, {-1}));
  if (reduction == "none") return rows;
  return reduction == "mean" ? mean(rows) : sum(rows);
}

}  // namespace aloft::ms
