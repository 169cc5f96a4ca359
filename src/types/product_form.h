// How the matrix products inside a call are computed, where that is not plainly on the operands'
// own values: a field of the call, of the graph's node, of the Plan's instruction. What the call
// means is the same in every form; how exactly it is computed is not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "types/dtype.h"

namespace aloft {

enum class ProductForm : std::uint8_t {
  Plain,
  // f32 on bf16 units: each operand cut into two or three bf16 planes, three or six products of
  // planes summed in f32 (docs/precision.md).
  Bf16x3,
  Bf16x6,
};

inline constexpr ProductForm kAllProductForms[] = {ProductForm::Plain, ProductForm::Bf16x3,
                                                   ProductForm::Bf16x6};
// Those of products of f32, as ops' records and kernels name them.
inline constexpr ProductForm kFormsOfF32[] = {ProductForm::Bf16x3, ProductForm::Bf16x6};

// "plain", "bf16x3", "bf16x6"
constexpr std::string_view name_of(ProductForm f) {
  constexpr std::string_view names[] = {"plain", "bf16x3", "bf16x6"};
  return names[static_cast<int>(f)];
}

constexpr std::optional<ProductForm> parse_product_form(std::string_view text) {
  for (ProductForm f : kAllProductForms)
    if (name_of(f) == text) return f;
  return std::nullopt;
}

constexpr bool is_among(ProductForm f, std::span<const ProductForm> forms) {
  for (ProductForm one : forms)
    if (one == f) return true;
  return false;
}

// Whether products of operands of these types may have the form.
constexpr bool fits_operands(ProductForm f, DType a, DType b) {
  return f == ProductForm::Plain || (a == DType::F32 && b == DType::F32);
}

}  // namespace aloft
