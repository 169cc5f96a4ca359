// The kernels of an op that is one product, by how its call is read.
#pragma once

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
std::vector<Kernel> product_kernels(std::string_view op, const ProductKernelNames& names) {
  using enum Precision;
  constexpr auto read = [](const CallSpec& call) {
    MatmulCall product;
    kRead(call, &product, Single);
    return product;
  };
  constexpr auto accepts = [](const CallSpec& call) { return kRead(call, nullptr, Single); };
  return {{.name = names.few_rows,
           .op = op,
           .accepts = [](const CallSpec& call) -> std::optional<Refusal> {
             MatmulCall product;
             if (auto refusal = kRead(call, &product, Single)) return refusal;
             return refuse_wide(product);
           },
           .prepare = [](const CallSpec& call) { return prepare_skinny(read(call)); }},
          {.name = names.split,
           .op = op,
           .accepts = [](const CallSpec& call) -> std::optional<Refusal> {
             if (auto refusal = refuse_form(call)) return refusal;
             return accepts(call);
           },
           .prepare = [](const CallSpec& call) { return prepare_product(read(call)); },
           .forms = kFormsOfF32},
          {.name = names.plain,
           .op = op,
           .accepts = accepts,
           .prepare = [](const CallSpec& call) { return prepare_product(read(call)); }},
          {.name = names.f64,
           .op = op,
           .accepts = [](const CallSpec& call) { return kRead(call, nullptr, Double); },
           .prepare =
               [](const CallSpec& call) {
                 MatmulCall product;
                 kRead(call, &product, Double);
                 return prepare_wide(product);
               }}};
}

}  // namespace aloft::cpu
