#include "passes/remark.h"

#include <fmt/format.h>

#include <iterator>

namespace aloft {
namespace {

struct Words {
  RemarkKind kind;
  std::string_view name;
  bool apart;
  std::string_view text;  // {}: what it is about
};

using enum RemarkKind;

constexpr Words kWords[] = {
    {HeadFused, "head-fused", false, "head and loss fused"},
    {HeadSwept, "head-swept", false, "loss and gradients in one sweep"},
    {HeadApart, "head-apart", true,
     "the logits are no projection without bias that it alone reads"},
    {RowsAdded, "rows-added", false, "rows are added in place"},
    {NormFused, "norm-fused", false, "fused with the residual's addition"},
    {NormOfNoSum, "norm-of-no-sum", true, "what it reads is no sum of two equals"},
    {NormOfOwnSum, "norm-of-own-sum", true, "the sum is its scale or shift too"},
    {NormOfEarlySum, "norm-of-early-sum", true, "the sum before it is read earlier"},
    {NormGradientShared, "norm-gradient-shared", true, "its gradient has several readers"},
    {NormGradientAlone, "norm-gradient-alone", true,
     "nothing is added to its gradient, or too late"},
    {LoopMade, "loop-made", false, "one loop of {}"},
    {LoopOfOne, "loop-of-one", true, "no element-wise neighbour of its shape and phase"},
    {LoopRefused, "loop-refused", true, "{}"},
    {LoopOfShapes, "loop-of-shapes", true, "its shape is {}"},
    {LoopOfPhases, "loop-of-phases", true, "it belongs to another phase"},
    {LoopTooLong, "loop-too-long", true, "the loop would have too many steps"},
    {LoopReadsMuch, "loop-reads-much", true, "the loop would have too many operands"},
    {LoopGivesMuch, "loop-gives-much", true, "the loop would have too many results"},
    {LoopTooLate, "loop-too-late", true, "{} reads a result before the loop could run"},
    {SumTooLate, "sum-too-late", true, "{} reads the sum before the loop could run"},
    {SumOfInnerAxes, "sum-of-inner-axes", true, "the sum is not over leading axes"},
    {RunsAsBody, "runs-as-body", false, "runs through its body"},
    {UpdatesHoisted, "updates-hoisted", false, "{} nodes follow their gradients"},
    {Recomputed, "recomputed", false, "computed again in the backward pass, and not kept"},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kWords); ++i)
    if (kWords[i].kind != static_cast<RemarkKind>(i)) return false;
  return std::size(kWords) == static_cast<std::size_t>(Recomputed) + 1;
}
static_assert(in_order(), "every kind has its words, in the order of the kinds");

const Words& words_of(RemarkKind kind) { return kWords[static_cast<int>(kind)]; }

}  // namespace

std::string_view name_of(RemarkKind kind) { return words_of(kind).name; }

std::optional<RemarkKind> parse_remark_kind(std::string_view name) {
  for (const Words& w : kWords)
    if (w.name == name) return w.kind;
  return std::nullopt;
}

bool stays_apart(RemarkKind kind) { return words_of(kind).apart; }

std::string text_of(const Remark& remark) {
  const Words& words = words_of(remark.kind);
  std::string text = fmt::format(fmt::runtime(words.text), remark.about);
  if (!words.apart) return text;
  return "not fused" + (remark.beside.empty() ? "" : " with " + remark.beside) + ": " + text;
}

}  // namespace aloft
