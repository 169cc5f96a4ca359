// What planning needs to know about kernels, without knowing any back end.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "types/call.h"

namespace aloft {

struct KernelChoice {
  std::string kernel;                     // empty: no kernel takes the call
  ProductForm form = ProductForm::Plain;  // how it computes the products in the call
  bool is_view = false;
  std::vector<std::pair<int, int>> in_place;  // (input, output) that may share a buffer
  std::size_t scratch_bytes = 0;
  std::vector<std::string> refusals;
};

using ChooseKernel = std::function<KernelChoice(const CallSpec&)>;

// UserError E0324: no kernel takes the call, for the reasons given, and its op has no body.
inline UserError nothing_computes(const CallSpec& call, const std::vector<std::string>& refusals) {
  std::string operands;
  for (const TensorType& t : call.in) operands += (operands.empty() ? "" : ", ") + t.str();
  UserError e("E0324", "nothing here computes " + call.op.str() + " on these operands");
  e.add_line("saw", operands + " " + call.attrs.str());
  for (const std::string& why : refusals) e.add_line("not", why);
  e.add_line("need", "operands of types and shapes that one of its kernels takes");
  return e;
}

}  // namespace aloft
