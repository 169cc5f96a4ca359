// The product of the others: what prod's gradients of every order are made of.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct ProdGradAttrs {
  Ints axes;
  static constexpr auto fields() {
    return FieldList{field("axes", &ProdGradAttrs::axes,
                           "the product's axes; empty: all; negative from the back")};
  }
};

// Most directions of prod_grad: its work doubles with each.
inline constexpr int kMostProdDirections = 7;

// d prod(x, axes) / d x, in x's shape: for each element the product of the others. With directions
// v1, v2, ... (each of x's shape) the derivative of that along v1, then along v2, ...
// More than kMostProdDirections of them: UserError E0203.
Tensor prod_grad(Operand x, const Ints& axes, const std::vector<Tensor>& directions);

}  // namespace aloft
