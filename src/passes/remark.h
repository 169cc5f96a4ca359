// What a pass says of a node, for reports: one of a few kinds, with what it names. Who acts on a
// remark asks for its kind; the words are made in one place, when somebody reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace aloft {

enum class RemarkKind : std::uint8_t {
  HeadFused,
  HeadSwept,
  HeadApart,
  RowsAdded,
  NormFused,
  NormOfNoSum,
  NormOfOwnSum,
  NormOfEarlySum,
  NormGradientShared,
  NormGradientAlone,
  LoopMade,  // about: its members
  LoopOfOne,
  LoopRefused,   // about: the back end's reason
  LoopOfShapes,  // about: the shapes
  LoopOfPhases,
  LoopTooLong,
  LoopReadsMuch,
  LoopGivesMuch,
  LoopTooLate,  // about: the node that reads a result
  SumTooLate,   // about: the node that reads the sum
  SumOfInnerAxes,
  RunsAsBody,
  UpdatesHoisted,  // about: how many
  Recomputed,
};

struct Remark {
  std::string node;  // identity of the node that it is about; of the graph, its name
  RemarkKind kind = RemarkKind::HeadFused;
  std::string about = {};   // what the kind names
  std::string beside = {};  // identity of the node that it might have been fused with
  friend bool operator==(const Remark&, const Remark&) = default;
};

// "loop-of-one", for records.
std::string_view name_of(RemarkKind kind);
std::optional<RemarkKind> parse_remark_kind(std::string_view name);
// Whether a node, which might have been fused, stays alone.
bool stays_apart(RemarkKind kind);
// The sentence for people, without the node: "not fused with fc/add#0: it belongs to another phase"
std::string text_of(const Remark& remark);

}  // namespace aloft
