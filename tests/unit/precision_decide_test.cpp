#include <gtest/gtest.h>

#include <array>

#include "base/error.h"
#include "precision/decide.h"
#include "precision/policy.h"

namespace aloft {
namespace {

using enum DType;

// The table of docs/precision.md, read by the compiler. One line: level, class, what comes out.
constexpr Facts facts(Level level, Numeric numeric, DType input = F32) {
  return {
      .numeric = numeric, .widest = input, .level = level, .low = level == Level::O0 ? F32 : BF16};
}
constexpr bool gives(const Decision& d, DType compute, DType store, std::optional<DType> cast) {
  return d.applies && d.compute == compute && d.accumulate == F32 && d.store == store &&
         d.cast_inputs == cast && d.reason != Reason::None;
}
constexpr std::optional<DType> kAsIs = std::nullopt;

static_assert(gives(decide_facts(facts(Level::O0, Numeric::Narrow, BF16)), F32, F32, F32));
static_assert(gives(decide_facts(facts(Level::O0, Numeric::Follow)), F32, F32, F32));
static_assert(gives(decide_facts(facts(Level::O0, Numeric::Widen)), F32, F32, F32));
static_assert(gives(decide_facts(facts(Level::O1, Numeric::Narrow)), BF16, BF16, BF16));
static_assert(gives(decide_facts(facts(Level::O1, Numeric::Follow, BF16)), BF16, BF16, kAsIs));
static_assert(gives(decide_facts(facts(Level::O1, Numeric::Follow, F32)), F32, F32, kAsIs));
static_assert(gives(decide_facts(facts(Level::O1, Numeric::Widen, BF16)), F32, F32, F32));
static_assert(gives(decide_facts(facts(Level::O2, Numeric::Narrow)), BF16, BF16, BF16));
static_assert(gives(decide_facts(facts(Level::O2, Numeric::Follow)), BF16, BF16, BF16));
static_assert(gives(decide_facts(facts(Level::O2, Numeric::Widen, BF16)), F32, BF16, kAsIs));
static_assert(gives(decide_facts(facts(Level::O3, Numeric::Narrow)), BF16, BF16, BF16));
static_assert(gives(decide_facts(facts(Level::O3, Numeric::Follow)), BF16, BF16, BF16));
static_assert(gives(decide_facts(facts(Level::O3, Numeric::Widen)), BF16, BF16, BF16));

constexpr Level kLevels[] = {Level::O0, Level::O1, Level::O2, Level::O3};
constexpr Numeric kClasses[] = {Numeric::Narrow, Numeric::Follow, Numeric::Widen, Numeric::Exact};
constexpr Phase kPhases[] = {Phase::Forward, Phase::Backward, Phase::Update};

// What holds at every level, class, phase, low type, listing and input.
constexpr bool invariants_hold() {
  for (Level level : kLevels)
    for (Numeric numeric : kClasses)
      for (Phase phase : kPhases)
        for (DType low : {BF16, F16, F32})
          for (Listing listing : {Listing::Unlisted, Listing::Allowed, Listing::Denied})
            for (DType input : {F64, F32, BF16, F16})
              for (int flags = 0; flags < 32; ++flags) {
                Facts f{.numeric = numeric,
                        .phase = phase,
                        .listing = listing,
                        .widest = input,
                        .level = level,
                        .low = low};
                f.is_loss = flags & 1, f.is_norm = flags & 2, f.mixed = flags & 4;
                f.any_float = !(flags & 8), f.only_allowed = flags & 16;
                const Decision d = decide_facts(f);
                if (d.reason == Reason::None) return false;
                if (numeric == Numeric::Exact || !f.any_float) {
                  if (d.applies) return false;
                  continue;
                }
                if (!d.applies || is_low(d.accumulate)) return false;
                if (input == F64 && !(d.compute == F64 && d.store == F64)) return false;
                if (input == F64 && d.cast_inputs && *d.cast_inputs != F64) return false;
                if (input != F64 &&
                    (f.is_loss || phase == Phase::Update || level == Level::O0 ||
                     listing == Listing::Denied || low == F32) &&
                    !(d.compute == F32 && d.store == F32))
                  return false;
                // A white list: the model's ops that are not on it.
                if (input != F64 && f.only_allowed && phase == Phase::Forward &&
                    listing == Listing::Unlisted && !(d.compute == F32 && d.store == F32))
                  return false;
                // A loss reads what is there: no f32 copy of the logits is made.
                if (f.is_loss && !f.mixed && d.cast_inputs) return false;
              }
  return true;
}
#ifndef __clang__  // whose budget of evaluation steps is too small for the whole table
static_assert(invariants_hold());
#endif
TEST(PrecisionDecide, InvariantsHold) { EXPECT_TRUE(invariants_hold()); }

static_assert(wider(BF16, F16) == F32 && wider(F16, F16) == F16 && wider(F32, F64) == F64);

Decision decided(std::string_view recipe, Numeric numeric, std::initializer_list<DType> inputs,
                 DecisionQuery q = {}) {
  q.numeric = numeric;
  q.inputs = {inputs.begin(), inputs.size()};
  return decide(q, parse_precision(recipe));
}

TEST(Decide, PerPhaseTypes) {
  const char* mixed = "O2:bf16 forward=bf16 backward=f16 update=f32";
  EXPECT_EQ(decided(mixed, Numeric::Narrow, {F32}).store, BF16);
  EXPECT_EQ(decided(mixed, Numeric::Narrow, {BF16}, {.phase = Phase::Backward}).store, F16);
  EXPECT_EQ(decided(mixed, Numeric::Narrow, {F16}, {.phase = Phase::Update}).store, F32);
  const char* wide = "O2:fp16 backward=fp32";
  EXPECT_EQ(decided(wide, Numeric::Narrow, {F16}, {.phase = Phase::Backward}).cast_inputs, F32);
  EXPECT_EQ(decided(wide, Numeric::Narrow, {F16}).store, F16);
}

TEST(Decide, MixedInputs) {
  EXPECT_EQ(decided("O1", Numeric::Follow, {BF16, F32}).cast_inputs, F32);
  EXPECT_EQ(decided("O1", Numeric::Follow, {BF16, F16}).store, F32);
  EXPECT_EQ(decided("O1", Numeric::Follow, {BF16, I32, Bool}).store, BF16);
  // A norm's f32 scale is kept (OpDef::keep_inputs) and not asked about; what remains is one type.
  EXPECT_EQ(decided("O2", Numeric::Widen, {BF16}, {.is_norm = true}).cast_inputs, kAsIs);
  EXPECT_EQ(decided("O2", Numeric::Widen, {F16, BF16}, {.is_norm = true}).cast_inputs, F32);
  EXPECT_EQ(decided("O3", Numeric::Widen, {F16, BF16}, {.is_norm = true}).cast_inputs, F32);
  EXPECT_EQ(decided("O2", Numeric::Widen, {BF16, F32}).cast_inputs, F32);
  EXPECT_EQ(decided("O2", Numeric::Widen, {BF16, F32}).store, BF16);
  EXPECT_EQ(decided("O2", Numeric::Widen, {BF16, F32}, {.is_loss = true}).cast_inputs, F32);
  EXPECT_EQ(decided("O3", Numeric::Narrow, {F64, F32}).cast_inputs, F64);
  EXPECT_FALSE(decided("O3", Numeric::Narrow, {I32, I64, Bool}).applies);
  EXPECT_FALSE(decided("O3", Numeric::Follow, {}).applies);
  EXPECT_FALSE(decided("O3", Numeric::Exact, {F32}).applies);
}

TEST(Decide, ListsByOpAndByParameter) {
  const std::array<std::string_view, 2> head = {"head.weight", "head.bias"};
  const char* deny = "O2 deny_params=head.*";
  EXPECT_EQ(decided(deny, Numeric::Narrow, {BF16}, {.parameters = head}).store, F32);
  EXPECT_EQ(decided(deny, Numeric::Narrow, {BF16}).store, BF16);
  EXPECT_EQ(decided("O2 deny_ops=mat*", Numeric::Narrow, {BF16}, {.op = "matmul"}).store, F32);
  EXPECT_EQ(decided("O1 allow_ops=softmax", Numeric::Widen, {F32}, {.op = "softmax"}).store, BF16);
  EXPECT_EQ(decided("O1 allow_params=head.*", Numeric::Widen, {F32}, {.parameters = head}).store,
            BF16);
  EXPECT_EQ(decided("O2 allow_ops=* deny_ops=*", Numeric::Narrow, {BF16}, {.op = "matmul"}).store,
            F32);  // deny wins
  EXPECT_EQ(decided("O3 allow_ops=*", Numeric::Widen, {BF16}, {.op = "nll", .is_loss = true}).store,
            F32);
}

TEST(Decide, UnderAWhiteListWhatIsNotOnItIsF32) {
  const char* white = "O1 allow_ops=matmul,relu only_allowed=true";
  EXPECT_EQ(decided(white, Numeric::Narrow, {F32}, {.op = "matmul"}).store, BF16);
  EXPECT_EQ(decided(white, Numeric::Follow, {F32}, {.op = "relu"}).store, BF16);
  for (const Numeric numeric : {Numeric::Narrow, Numeric::Follow, Numeric::Widen})
    for (const DType input : {F32, BF16}) {
      const Decision d = decided(white, numeric, {input}, {.op = "other"});
      EXPECT_EQ(d.cast_inputs, F32);
      EXPECT_EQ(d.store, F32);
      EXPECT_EQ(d.reason, Reason::NotAllowed);
    }
  // Gradients: the product of an f32 op's is f32, whatever its name; of a low one's, low.
  const DecisionQuery backward{.op = "matmul", .phase = Phase::Backward};
  EXPECT_EQ(decided(white, Numeric::Narrow, {F32, F32}, backward).store, F32);
  EXPECT_EQ(decided(white, Numeric::Narrow, {BF16, BF16}, backward).store, BF16);
  EXPECT_EQ(decided(white, Numeric::Follow, {BF16, F32}, backward).store, F32);
  EXPECT_EQ(decided(white, Numeric::Widen, {BF16}, backward).store, F32);
}

TEST(Decide, CapabilityIsAskedLast) {
  DecisionQuery q{.capability = {.computes_f16 = false}};
  const Decision d = decided("O2:fp16", Numeric::Narrow, {F16}, q);
  EXPECT_EQ(d.compute, F32);
  EXPECT_EQ(d.store, F16);  // storage f16, arithmetic f32
  q.capability = {.stores_f16 = false};
  EXPECT_EQ(decided("O2:fp16", Numeric::Narrow, {F32}, q).store, F32);
  EXPECT_EQ(decided("O2:bf16", Numeric::Narrow, {F32}, q).store, BF16);
}

TEST(Decide, AnUnresolvedAutoIsOurMistake) {
  EXPECT_THROW(decided("auto", Numeric::Narrow, {F32}), InternalError);
  EXPECT_THROW(scaler_rule(parse_precision("O2:auto")), InternalError);
}

TEST(Weights, StorageAndMasters) {
  auto is = [](std::string_view recipe, std::string_view name, bool norm, DType stored,
               bool master) {
    const WeightStorage w = weight_storage(name, norm, parse_precision(recipe));
    EXPECT_EQ(w.stored, stored) << recipe << " " << name << ": " << w.reason;
    EXPECT_EQ(w.has_master, master) << recipe << " " << name << ": " << w.reason;
    EXPECT_FALSE(w.reason.empty());
  };
  is("O0", "w", false, F32, false);
  is("O1:fp16", "w", false, F32, false);
  is("O2:fp16", "w", false, F16, true);
  is("O2:fp16", "norm.weight", true, F32, false);
  is("O2:fp16 keep_norms_fp32=false", "norm.weight", true, F16, true);
  is("O2:fp16 allow_params=norm.*", "norm.weight", true, F16, true);
  is("O2:bf16 deny_params=h.0.*", "h.0.up.weight", false, F32, false);
  is("O2:bf16 deny_params=h.0.*", "h.1.up.weight", false, BF16, true);
  is("O2:bf16 backward=f16", "w", false, BF16, true);
  is("O2:bf16 forward=fp32", "w", false, F32, false);
  is("O3:bf16", "w", false, BF16, false);
  is("O3:bf16", "norm.weight", true, BF16, false);
  is("O3:bf16 keep_norms_fp32=true", "norm.weight", true, F32, false);
  EXPECT_EQ(weight_storage("w", false, parse_precision("O2:fp16"), {.stores_f16 = false}).stored,
            F32);
}

// Every reason has a sentence of its own, by which a record gives it back.
TEST(Reasons, AreValuesWithWords) {
  for (int i = 0; i <= static_cast<int>(Reason::NormScale); ++i) {
    const auto reason = static_cast<Reason>(i);
    EXPECT_EQ(parse_reason(text_of(reason)), reason) << i;
  }
  EXPECT_EQ(parse_reason("because"), std::nullopt);
}

TEST(Policies, AreEqualWhereTheirRecipesAre) {
  const Policy none, a(parse_precision("O2:bf16 deny_ops=add")),
      b(parse_precision("o2 deny_ops=add"));
  EXPECT_FALSE(none);
  EXPECT_EQ(none.str(), "");
  EXPECT_EQ(a, b);
  EXPECT_EQ(&a.recipe(), &b.recipe());
  EXPECT_EQ(a.str(), "O2:bf16 deny_ops=add");
  EXPECT_NE(a, Policy(parse_precision("O2:bf16")));
  EXPECT_THROW(none.recipe(), InternalError);
  PrecisionRecipe measured = parse_precision("O2:bf16 deny_ops=add");
  measured.auto_reason = "measured";
  EXPECT_EQ(a, Policy(measured));
  EXPECT_TRUE(Policy(measured).recipe().auto_reason.empty());
}

TEST(Scaler, ByLevelAndType) {
  using scalar::ScalerKind;
  auto kind = [](std::string_view recipe) { return scaler_rule(parse_precision(recipe)).kind; };
  EXPECT_EQ(kind("O0"), ScalerKind::None);
  EXPECT_EQ(kind("O1:fp16"), ScalerKind::Dynamic);
  EXPECT_EQ(kind("O2:fp16"), ScalerKind::Dynamic);
  EXPECT_EQ(kind("O1:bf16"), ScalerKind::None);
  EXPECT_EQ(kind("O2:bf16"), ScalerKind::None);
  EXPECT_EQ(kind("O3:fp16"), ScalerKind::None);
  EXPECT_EQ(kind("O2:bf16 backward=f16"), ScalerKind::Dynamic);
  EXPECT_EQ(kind("O2:fp16 loss_scale=none"), ScalerKind::None);
  EXPECT_EQ(kind("O3:fp16 loss_scale=fixed"), ScalerKind::Fixed);
  EXPECT_EQ(kind("O0 loss_scale=dynamic"), ScalerKind::Dynamic);
  EXPECT_EQ(scaler_rule(parse_precision("O2 loss_scale=fixed")).init, 128.0f);
  EXPECT_EQ(scaler_rule(parse_precision("O2 loss_scale=1024")).init, 1024.0f);
  EXPECT_EQ(scaler_rule(parse_precision("O2:fp16")), scalar::dynamic_scaler());
}

}  // namespace
}  // namespace aloft
