// Calls of the basic ops that cannot be, and calls made at random: inference takes them or refuses
// them with a UserError, and never does anything else.
#include "ops/activation.h"
#include "ops/arg_reduce.h"
#include "ops/attention_qkv.h"
#include "ops/broadcast.h"
#include "ops/clamp.h"
#include "ops/concat.h"
#include "ops/constant.h"
#include "ops/conv1d.h"
#include "ops/conv2d.h"
#include "ops/conv_transpose2d.h"
#include "ops/gather.h"
#include "ops/losses.h"
#include "ops/norm.h"
#include "ops/one_hot.h"
#include "ops/pad.h"
#include "ops/pool2d.h"
#include "ops/random.h"
#include "ops/rearrange.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/sample_inputs.h"
#include "ops/slice.h"
#include "ops/sort.h"
#include "ops/transpose.h"
#include "ops/wrong_calls.h"

namespace aloft {
namespace {

using testing::expect_refused;

// Sizes that a user names are added up and multiplied: what they come to may be no size at all.
TEST(BasicErrors, SizesBeyond63BitsAreRefused) {
  const TensorType x{DType::F32, {4, 8}}, image{DType::F32, {1, 1, 4, 4}};
  const TensorType signal{DType::F32, {1, 1, 4}}, kernel{DType::F32, {1, 1, 3}};
  const TensorType wide{DType::F32, {0, INT64_MAX}};
  const std::string need = "below 2^63 bytes";
  expect_refused({
      {"pad", to_attrs(PadAttrs{0, INT64_MAX, INT64_MAX}), {x}, need.c_str()},
      {"pad", to_attrs(PadAttrs{0, 0, 0, 0, INT64_MAX}), {x}, need.c_str()},
      {"pad", to_attrs(PadAttrs{0, INT64_MAX - 4, 0}), {x}, need.c_str()},
      {"concat", to_attrs(ConcatAttrs{1}), {wide, wide}, need.c_str()},
      {"split", to_attrs(SplitAttrs{0, {INT64_MAX, INT64_MAX, 6}}), {x}, need.c_str()},
      {"tile", to_attrs(RepeatAttrs{0, INT64_MAX}), {x}, need.c_str()},
      {"one_hot", to_attrs(OneHotAttrs{INT64_MAX}), {{DType::I32, {4}}}, need.c_str()},
      {"conv2d", to_attrs(Conv2dAttrs{{1, 1}, {INT64_MAX, 0}}), {image, image}, need.c_str()},
      {"conv2d",
       to_attrs(Conv2dAttrs{{1, 1}, {0, 0}, {INT64_MAX, 1}}),
       {image, image},
       need.c_str()},
      {"conv1d", to_attrs(Conv1dAttrs{1, INT64_MAX}), {signal, kernel}, need.c_str()},
      {"conv_transpose2d",
       to_attrs(ConvTranspose2dAttrs{.stride = {INT64_MAX, 1}}),
       {image, image},
       need.c_str()},
      {"max_pool2d",
       to_attrs(MaxPool2dAttrs{{2, 2}, {}, {std::int64_t{1} << 62, 0}}),
       {image},
       "half the kernel"},
      {"attention_qkv",
       to_attrs(AttentionQkvAttrs{6148914691236517206}),
       {{DType::F32, {2, 3, 12}}},
       "multiple"},
  });
}

TEST(BasicErrors, NineAxesAreRefused) {
  const TensorType nine{DType::F32, Shape(std::vector<Dim>(9, Dim(1)))};
  const TensorType eight{DType::F32, Shape(std::vector<Dim>(8, Dim(1)))};
  expect_refused({
      {"sum", {}, {nine}, "rank 0 to 8"},
      {"max", {}, {nine}, "rank 0 to 8"},
      {"add", {}, {nine, nine}, "rank 0 to 8"},
      {"transpose", to_attrs(TransposeAttrs{{0, 1, 2, 3, 4, 5, 6, 7, 8}}), {nine}, "rank 0 to 8"},
      {"reshape", to_attrs(ReshapeAttrs{nine.shape}), {eight}, "rank 0 to 8"},
      {"full", to_attrs(FullAttrs{nine.shape}), {}, "rank 0 to 8"},
      {"one_hot", to_attrs(OneHotAttrs{3}), {{DType::I32, eight.shape}}, "rank 0 to 8"},
  });
  EXPECT_EQ(infer_types(op_named("sum"), {}, std::vector{eight}, {}).size(), 1u);
}

TEST(BasicErrors, NameTheOpAndWhatWasNeeded) {
  const TensorType x{DType::F32, {4, 8}}, y{DType::F32, {4, 5}}, half{DType::F16, {4, 8}};
  const TensorType i{DType::I32, {4, 8}}, mask{DType::Bool, {4, 8}};
  const TensorType batch{DType::F32, {Dim::symbolic("B", 9), 8}};
  expect_refused({
      {"add", {}, {x}, "need  2"},
      {"add", {}, {x, half}, "the same element type"},
      {"add", {}, {x, y}, "equal or 1"},
      {"exp", {}, {i}, "a floating-point tensor"},
      {"gelu", {}, {i}, "a floating-point tensor"},
      {"gelu_grad", {}, {y, x}, "[4,5]"},
      {"where", {}, {x, x, x}, "a bool tensor"},
      {"where", {}, {mask, x, half}, "the same element type"},
      {"logical_and", {}, {x, mask}, "bool tensors"},
      {"is_nan", {}, {i}, "a floating-point tensor"},
      {"sum", to_attrs(ReduceAttrs{{2}, false}), {x}, "an axis from -2 to 1"},
      {"sum", to_attrs(ReduceAttrs{{1, -1}, false}), {x}, "distinct axes"},
      {"norm", to_attrs(NormAttrs{{}, false, 3}), {x}, "order 1 or 2"},
      {"argmax", {}, {{DType::F32, {3, 0}}}, "at least one element"},
      {"clamp", to_attrs(ClampAttrs{2, 1}), {x}, "low <= high"},
      {"reshape", to_attrs(ReshapeAttrs{{5, 5}}), {x}, "as many elements"},
      {"broadcast", to_attrs(BroadcastAttrs{{3, 4, 9}}), {x}, "equal or 1"},
      {"transpose", to_attrs(TransposeAttrs{{0}}), {x}, "2 axes"},
      {"slice", to_attrs(SliceAttrs{0, 0, 2}), {batch}, "a constant length"},
      {"slice", to_attrs(SliceAttrs{0, 0, 2, 0}), {x}, "step >= 1"},
      {"pad", to_attrs(PadAttrs{0, -1, 0}), {x}, "counts >= 0"},
      {"concat", {}, {}, "at least one tensor"},
      {"concat", {}, {x, y}, "equal but for axis 0"},
      {"stack", {}, {x, y}, "[4,8]"},
      {"split", to_attrs(SplitAttrs{0, {1, 2}}), {x}, "add up to 4"},
      {"tile", to_attrs(RepeatAttrs{0, 2}), {batch}, "a constant length"},
      {"roll", to_attrs(RollAttrs{0, 1}), {batch}, "a constant length"},
      {"gather", to_attrs(GatherAttrs{0}), {x, x}, "an integer tensor"},
      {"gather", to_attrs(GatherAttrs{0}), {x, {DType::I32, {4, 5}}}, "equal but for axis 0"},
      {"scatter_add", to_attrs(GatherAttrs{0}), {x, i, y}, "[4,8]"},
      {"index_add", to_attrs(GatherAttrs{0}), {x, i, x}, "rank 1"},
      {"one_hot", to_attrs(OneHotAttrs{5}), {x}, "an integer tensor"},
      {"top_k", to_attrs(TopKAttrs{9}), {x}, "0 <= k <= 8"},
      {"random_normal", to_attrs(RandomNormalAttrs{{3}}), {x}, "i64[3]"},
      {"mse_loss", {}, {x, y}, "[4,8]"},
      {"mse_loss", to_attrs(LossAttrs{"avg"}), {x, x}, "mean, sum or none"},
      {"nll_loss", {}, {x, {DType::I32, {8}}}, "[4]"},
  });
}

TensorType random_operand(testing::Draw& draw) {
  TensorType t = testing::random_type(draw);
  if (t.shape.rank() > 0 && draw(6) == 0) t.shape[0] = Dim::symbolic("B", 1 + draw(4));
  return t;
}

TEST(BasicErrors, AnyCallIsTakenOrRefused) {
  testing::Draw draw;
  for (const OpDef& op : op_table()) {
    const auto samples = testing::samples_of(op);
    int taken = 0;
    for (int trial = 0; trial < 400; ++trial) {
      std::vector<TensorType> in;
      const std::int64_t count = draw(5);
      for (std::int64_t i = 0; i < count; ++i)
        in.push_back(i > 0 && draw(2) == 0 ? in[0] : random_operand(draw));
      const Attrs& attrs =
          samples.empty() || draw(3) == 0 ? op.default_attrs : samples[draw(samples.size())].attrs;
      try {
        infer_types(op, attrs, in, {});
        ++taken;
      } catch (const UserError&) {
      } catch (const std::exception& e) {
        ADD_FAILURE() << op.name.str() << " " << attrs.str() << ": " << e.what();
      }
    }
    EXPECT_LT(taken, 400) << op.name.str() << " refuses nothing";
  }
}

// Whatever op a shape goes into: it is the shape that is wrong, not the memory that is missing.
TEST(BasicErrors, ShapesThatNothingCanHave) {
  const std::int64_t huge = std::int64_t{1} << 40;
  const TensorType one{DType::F32, {1, 1}}, rng{DType::I64, {3}};
  expect_refused({
      {"full", to_attrs(FullAttrs{{-1, 2}, 0, DType::F32}), {}, "f32[-1,2]"},
      {"full", to_attrs(FullAttrs{{huge, huge}, 0, DType::F32}), {}, "below 2^63 bytes"},
      {"full", to_attrs(FullAttrs{{huge, huge / 4 * 2}, 0, DType::F32}), {}, "below 2^63 bytes"},
      {"iota", to_attrs(IotaAttrs{-1}), {}, "count >= 0"},
      {"iota", to_attrs(IotaAttrs{huge << 22}), {}, "below 2^63 bytes"},
      {"random_uniform", to_attrs(RandomUniformAttrs{{3, -4}}), {rng}, "[3,-4]"},
      {"random_normal", to_attrs(RandomNormalAttrs{{huge, huge}}), {rng}, "below 2^63 bytes"},
      {"broadcast", to_attrs(BroadcastAttrs{{huge, huge}}), {one}, "below 2^63 bytes"},
      {"tile", to_attrs(RepeatAttrs{0, huge << 22}), {one}, "below 2^63 bytes"},
  });
  EXPECT_THROW((TensorType{DType::F32, {-2, -3}}.max_bytes()), UserError);
}

}  // namespace
}  // namespace aloft
