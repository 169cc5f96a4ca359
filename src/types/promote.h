// The element type in which operands of different types meet: PyTorch's rules, said here and
// nowhere else (docs/number-types.md). Bool yields to integers, integers to floats; among floats
// and among integers the wider one wins.
#pragma once

#include "types/dtype.h"

namespace aloft {

// Of two tensors. f16 with bf16 is f32, which holds both; i8 with u8 is i32, the narrowest type
// here that holds both. A tensor without axes counts like any other.
DType promoted(DType a, DType b);

// A number written in C++ beside a tensor: it keeps the tensor's type where its kind allows.
enum class NumberKind { Integer, Real };
// 2 keeps every type but bool (i64 then); 0.5 keeps every float and makes f32 of all else.
DType promoted(DType tensor, NumberKind number);

// Where integers and bools have no result of their own (a quotient, an angle): f32.
constexpr DType as_float(DType t) { return is_float(t) ? t : DType::F32; }
// Where sums of many are made: integers and bools in i64.
constexpr DType as_sum(DType t) { return is_float(t) ? t : DType::I64; }

}  // namespace aloft
