// Element types. The names (f32, bf16, ...) are those of the graph text, recipes and files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace aloft {

// The type of a tensor's elements. Bool takes a byte each.
enum class DType : std::uint8_t { F64, F32, BF16, F16, I64, I32, U8, I8, Bool };

// Every one, for loops over them.
inline constexpr DType kAllDTypes[] = {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64,
                                       DType::I32, DType::U8,  DType::I8,   DType::Bool};

// Bytes of an element.
constexpr std::size_t size_of(DType t) {
  switch (t) {
    case DType::F64:
    case DType::I64:
      return 8;
    case DType::F32:
    case DType::I32:
      return 4;
    case DType::BF16:
    case DType::F16:
      return 2;
    default:
      return 1;
  }
}

// "f32", "bf16", ...: as graphs, recipes and messages have it.
constexpr std::string_view name_of(DType t) {
  constexpr std::string_view names[] = {"f64", "f32", "bf16", "f16", "i64",
                                        "i32", "u8",  "i8",   "bool"};
  return names[static_cast<int>(t)];
}

// The type of such a name; nothing for any other.
constexpr std::optional<DType> parse_dtype(std::string_view text) {
  for (DType t : kAllDTypes)
    if (name_of(t) == text) return t;
  return std::nullopt;
}

constexpr bool is_float(DType t) { return t <= DType::F16; }  // f64, f32, bf16, f16
constexpr bool is_low(DType t) { return t == DType::BF16 || t == DType::F16; }  // of 16 bits
constexpr bool is_integer(DType t) {
  return t >= DType::I64 && t <= DType::I8;
}  // i64, i32, u8, i8; not bool

}  // namespace aloft
