// The kernels of an op that is one product, by how its call is read.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "backends/cpu/matmul/matmul_call.h"
#include "backends/cpu/matmul/wide_matmul.h"

namespace aloft::cpu {

// Names of the kernels, fastest first.
struct ProductKernelNames {
  std::string_view few_rows, split, plain, f64;
};

// `kRead`: read_matmul, or another that gives its like.
template <auto kRead>
class ProductKernels {
 public:
  static std::vector<Kernel> list(std::string_view op, const ProductKernelNames& names) {
    return {
        {.name = names.few_rows,
         .op = op,
         .accepts = accepts_few_rows,
         .prepare = [](const CallSpec& call) { return prepare_skinny(read(call)); }},
        {.name = names.split,
         .op = op,
         .accepts = accepts_form,
         .prepare = [](const CallSpec& call) { return prepare_product(read(call)); },
         .forms = kFormsOfF32},
        {.name = names.plain,
         .op = op,
         .accepts = [](const CallSpec& call) { return kRead(call, nullptr, Precision::Single); },
         .prepare = [](const CallSpec& call) { return prepare_product(read(call)); }},
        {.name = names.f64,
         .op = op,
         .accepts = [](const CallSpec& call) { return kRead(call, nullptr, Precision::Double); },
         .prepare =
             [](const CallSpec& call) { return prepare_wide(read(call, Precision::Double)); }}};
  }

 private:
  static MatmulCall read(const CallSpec& call, Precision precision = Precision::Single) {
    MatmulCall product;
    kRead(call, &product, precision);
    return product;
  }
  static std::optional<Refusal> accepts_few_rows(const CallSpec& call) {
    MatmulCall product;
    if (auto refusal = kRead(call, &product, Precision::Single)) return refusal;
    return refuse_wide(product);
  }
  static std::optional<Refusal> accepts_form(const CallSpec& call) {
    if (auto refusal = refuse_form(call)) return refusal;
    return kRead(call, nullptr, Precision::Single);
  }
};

}  // namespace aloft::cpu
