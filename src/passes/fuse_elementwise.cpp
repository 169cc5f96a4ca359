// fuse-elementwise: element-wise ops that follow one another, or read the same value, become one
// op that goes over memory once.
//
//   %3 = mul(%0, %1)            ->   %4.0, %4.1 = fused(%0, %1, %2)
//   %4 = silu(%3)                      {program="%3 = mul(%0, %1) : f32; %4 = silu(%3) : f32;
//   %5 = add(%4, %2)                             %5 = add(%4, %2) : f32; return %3, %5"}
//   ... %3 has another reader
//
// A group runs where its last member stood, so nobody outside may read a member's result before
// that: which also means that no path leaves the group and comes back. Members have one shape and
// one phase; what is smaller and broadcasts stays an operand. Every result is rounded to its own
// type as before, so the bits stay. A sum of a member over leading axes (the gradient of a bias)
// joins its group, also through a reshape. What stays alone, and why, is a remark.
//
// Groups are made as if nobody looked on. A member's result that is tapped then is one more result
// of the loop, behind the others; where no kernel gives it, the tap is lost.
#include <algorithm>
#include <map>

#include "ops/fused.h"
#include "ops/graph_emitter.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "passes/pass.h"
#include "types/step_program.h"

namespace aloft {
namespace {

// What one loop may hold: its tiles stay in the first cache together, and its code stays readable.
constexpr std::size_t kMostMembers = 24, kMostOperands = 12, kMostResults = 8;

struct Group {
  std::vector<std::uint32_t> members;  // in the graph's order
  std::vector<std::uint32_t> sums;     // of members' results, moved up to them
};

// What a group reads from outside, and what others read of it, in order of first appearance.
struct Border {
  std::vector<ValueId> operands, results;
};

// Why a node is in no loop: the fields of a remark about it.
struct Apart {
  RemarkKind kind = RemarkKind::LoopOfOne;
  std::string about = {}, beside = {};
};

class Fuser {
 public:
  Fuser(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  PassReport run() {
    const std::vector<std::uint32_t> order = graph_.order();
    for (std::size_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
    for (std::uint32_t n : order)
      if (is_candidate(n)) place(n);
    for (std::uint32_t n : order)
      if (is_sum(n)) join_sum(n);
    for (const Group& g : groups_)
      if (g.members.size() + g.sums.size() > 1) fuse(g);
    for (const Group& g : groups_)
      if (g.members.size() == 1 && g.sums.empty())
        apart_.emplace(g.members[0], Apart{RemarkKind::LoopOfOne});
    for (auto& [n, why] : apart_)
      if (!graph_.node(n).erased)
        report_.remarks.push_back({identity_[n], why.kind, why.about, why.beside});
    if (report_.changed) remove_dead(graph_);
    return std::move(report_);
  }

 private:
  bool is_candidate(std::uint32_t n) {
    const Node& node = graph_.node(n);
    const OpDef* op = find_op(node.op);
    if (op == nullptr || op->fusion != Fusion::Elementwise || node.in.empty() ||
        node.out.size() != 1)
      return false;
    identity_[n] = node.identity();
    Group alone;
    alone.members = {n};
    if (const auto why = refusal_of(alone)) {
      apart_[n] = *why;
      return false;
    }
    return true;
  }

  // Why the back end does not run the group as one loop.
  std::optional<Apart> refusal_of(const Group& g) {
    const KernelChoice choice = choice_for(g, border_of(g));
    if (!choice.kernel.empty()) return std::nullopt;
    return Apart{RemarkKind::LoopRefused,
                 choice.refusals.empty() ? "no kernel runs fused loops" : choice.refusals.front()};
  }

  KernelChoice choice_for(const Group& g, const Border& border) {
    CallSpec call{Name(kFusedOp),
                  to_attrs(FusedAttrs{print(program_of(g, border))}),
                  {},
                  {},
                  context_.threads};
    for (ValueId v : border.operands) call.in.push_back(graph_.type(v));
    for (ValueId v : border.results) call.out.push_back(graph_.type(v));
    return context_.choose(call);
  }

  // Into the groups of its operands and of those that read what it reads, or into a new one.
  void place(std::uint32_t n) {
    std::size_t home = groups_.size();
    groups_.push_back({{n}});
    group_of_[n] = home;
    const Node& node = graph_.node(n);
    for (ValueId v : node.in) {
      const auto made = group_of_.find(v.node);
      if (made != group_of_.end()) join(n, home, made->second, v.node);
    }
    for (ValueId v : node.in) {
      const auto read = readers_.find(v);
      if (read != readers_.end() && graph_.type(v).shape == node.out[0].shape)
        join(n, home, group_of_[read->second], read->second);
      readers_[v] = n;
    }
  }

  // Moves `home` into group `other`, of which `neighbour` is a member, if one loop may hold both.
  void join(std::uint32_t n, std::size_t& home, std::size_t other, std::uint32_t neighbour) {
    if (other == home) return;
    Group both = groups_[other];
    both.members.insert(both.members.end(), groups_[home].members.begin(),
                        groups_[home].members.end());
    std::sort(both.members.begin(), both.members.end(),
              [&](std::uint32_t a, std::uint32_t b) { return position_[a] < position_[b]; });
    if (auto why = obstacle(both, n, neighbour)) {
      why->beside = identity_[neighbour];
      apart_[n] = *why;
      return;
    }
    for (std::uint32_t m : groups_[home].members) group_of_[m] = other;
    groups_[home].members.clear();
    groups_[other] = std::move(both);
    home = other;
  }

  std::optional<Apart> obstacle(const Group& both, std::uint32_t n, std::uint32_t neighbour) const {
    const Node &a = graph_.node(n), &b = graph_.node(neighbour);
    if (a.out[0].shape != b.out[0].shape)
      return Apart{RemarkKind::LoopOfShapes,
                   b.out[0].shape.str() + ", not " + a.out[0].shape.str()};
    if (a.where.phase != b.where.phase) return Apart{RemarkKind::LoopOfPhases};
    if (both.members.size() > kMostMembers) return Apart{RemarkKind::LoopTooLong};
    const std::size_t last = position_.at(both.members.back());
    for (std::uint32_t m : both.members)
      for (std::uint32_t user : graph_.readers({m, 0}))
        if (!contains(both, user) && position_.at(user) < last)
          return Apart{RemarkKind::LoopTooLate, graph_.node(user).identity()};
    const Border border = border_of(both);
    if (border.operands.size() > kMostOperands) return Apart{RemarkKind::LoopReadsMuch};
    if (border.results.size() > kMostResults) return Apart{RemarkKind::LoopGivesMuch};
    return std::nullopt;
  }

  bool is_sum(std::uint32_t n) const {
    const Node& node = graph_.node(n);
    const OpDef* op = find_op(node.op);
    return op != nullptr && op->fusion == Fusion::RowReduce && node.op == Name("sum");
  }

  // What a sum reads, seen through reshapes.
  ValueId summed(std::uint32_t sum) const {
    ValueId v = graph_.node(sum).in[0];
    while (graph_.node(v.node).op == Name("reshape")) v = graph_.node(v.node).in[0];
    return v;
  }

  // The axes of a step's shape that the sum goes over, if they lead and the rest is the result.
  std::optional<Ints> leading_axes(std::uint32_t sum) const {
    const Shape& from = graph_.type(summed(sum)).shape;
    const Shape& to = graph_.node(sum).out[0].shape;
    const Shape& read = graph_.type(graph_.node(sum).in[0]).shape;
    const int kept = to.rank(), lead = from.rank() - kept;
    if (lead < 1 || read.rank() <= kept || !to.is_constant()) return std::nullopt;
    for (int i = 1; i <= kept; ++i)
      if (!(from[-i] == to[-i]) || !(read[-i] == to[-i])) return std::nullopt;
    // Of equal extents another axis could be meant.
    const Ints axes = from_attrs<ReduceAttrs>(graph_.node(sum).attrs).axes;
    for (std::int64_t axis : axes)
      if (normal_axis(axis, read.rank()) >= read.rank() - kept) return std::nullopt;
    Ints all;
    for (int i = 0; i < lead; ++i) all.push_back(i);
    return all;
  }

  void join_sum(std::uint32_t n) {
    const ValueId v = summed(n);
    const auto found = group_of_.find(v.node);
    if (found == group_of_.end()) return;
    Group with = groups_[found->second];
    with.sums.push_back(n);
    const std::size_t last = position_[with.members.back()];
    std::optional<Apart> why;
    if (graph_.node(n).where.phase != graph_.node(v.node).where.phase)
      why = Apart{RemarkKind::LoopOfPhases};
    else if (!leading_axes(n))
      why = Apart{RemarkKind::SumOfInnerAxes};
    else if (with.members.size() + with.sums.size() > kMostSteps)
      why = Apart{RemarkKind::LoopTooLong};
    for (std::uint32_t user : graph_.readers({n, 0}))
      if (position_.at(user) < last)
        why = Apart{RemarkKind::SumTooLate, graph_.node(user).identity()};
    identity_[n] = graph_.node(n).identity();
    if (!why) why = refusal_of(with);
    if (!why) {
      groups_[found->second] = std::move(with);
    } else {
      why->beside = identity_[v.node];
      apart_[n] = *why;
    }
  }

  static bool contains(const Group& g, std::uint32_t n) {
    return std::find(g.members.begin(), g.members.end(), n) != g.members.end();
  }

  Border border_of(const Group& g) const {
    Border border;
    for (std::uint32_t m : g.members) {
      for (ValueId v : graph_.node(m).in)
        if (!contains(g, v.node) &&
            std::find(border.operands.begin(), border.operands.end(), v) == border.operands.end())
          border.operands.push_back(v);
      int inside = 0;
      for (std::uint32_t user : g.members)
        for (ValueId v : graph_.node(user).in) inside += v == ValueId{m, 0};
      // A group on trial has all its results, also where nobody reads them.
      for (std::uint32_t sum : g.sums) inside += graph_.node(sum).in[0] == ValueId{m, 0};
      if (graph_.use_count({m, 0}) > inside || inside == 0) border.results.push_back({m, 0});
    }
    for (std::uint32_t sum : g.sums) border.results.push_back({sum, 0});
    return border;
  }

  // The same with the results that are only tapped, if the kernel stays the same.
  Border with_taps(const Group& g, const Border& border) {
    Border more = border;
    for (const GraphOutput& o : graph_.outputs()) {
      const auto& known = more.results;
      if (o.kind == OutputKind::Tap && contains(g, o.value.node) &&
          std::find(known.begin(), known.end(), o.value) == known.end())
        more.results.push_back(o.value);
    }
    if (more.results.size() == border.results.size()) return border;
    return choice_for(g, more).kernel == choice_for(g, border).kernel ? more : border;
  }

  StepProgram program_of(const Group& g, const Border& border) const {
    StepProgram program;
    program.inputs = static_cast<int>(border.operands.size());
    std::map<ValueId, int> number;
    for (ValueId v : border.operands) number.emplace(v, static_cast<int>(number.size()));
    for (std::uint32_t m : g.members) {
      const Node& node = graph_.node(m);
      ProgramStep step{node.op, node.attrs, {}, node.out[0].dtype};
      for (ValueId v : node.in) step.in.push_back(number.at(v));
      number[{m, 0}] = program.values();
      program.steps.push_back(std::move(step));
    }
    for (std::uint32_t s : g.sums) {
      number[{s, 0}] = program.values();
      program.steps.push_back({graph_.node(s).op,
                               to_attrs(ReduceAttrs{*leading_axes(s), false}),
                               {number.at(summed(s))},
                               graph_.node(s).out[0].dtype});
    }
    for (ValueId v : border.results) program.out.push_back(number.at(v));
    return program;
  }

  void fuse(const Group& g) {
    if (const auto why = refusal_of(g)) {
      for (std::uint32_t m : g.members) apart_[m] = *why;
      return;
    }
    const Border border = with_taps(g, border_of(g));
    const std::uint32_t last = g.members.back();
    std::vector<std::uint32_t> all = g.members;
    all.insert(all.end(), g.sums.begin(), g.sums.end());
    std::string members;
    for (std::uint32_t m : all) members += (members.empty() ? "" : ", ") + identity_[m];
    Where where = graph_.node(last).where;
    where.pass = "fuse-elementwise";
    where.reason = "one loop over tiles";
    GraphEmitter emitter(graph_);
    emitter.insert_before(last);
    std::vector<Tensor> in;
    for (ValueId v : border.operands) in.push_back(emitter.handle(v));
    const std::vector<Tensor> out =
        emitter.emit({kFusedOp, to_attrs(FusedAttrs{print(program_of(g, border))})}, in, where);
    graph_.set_members(out[0].id().node, members);
    for (std::size_t i = 0; i < border.results.size(); ++i)
      graph_.replace_uses(border.results[i], out[i].id());
    report_.changed = true;
    report_.remarks.push_back(
        {graph_.node(out[0].id().node).identity(), RemarkKind::LoopMade, members});
    for (std::uint32_t m : all) apart_.erase(m);
  }

  Graph& graph_;
  const PassContext& context_;
  PassReport report_;
  std::map<std::uint32_t, std::size_t> position_;
  std::map<std::uint32_t, std::string> identity_;
  std::vector<Group> groups_;
  std::map<std::uint32_t, std::size_t> group_of_;
  std::map<ValueId, std::uint32_t> readers_;  // the last candidate that reads a value
  std::map<std::uint32_t, Apart> apart_;      // why a candidate, or nearly one, stays alone
};

PassReport run(Graph& graph, const PassContext& context) {
  if (!context.choose) return {};
  return Fuser(graph, context).run();
}

}  // namespace

const Pass fuse_elementwise{"fuse-elementwise",
                            "element-wise neighbours become one loop over tiles",
                            Form::Executable,
                            std::nullopt,
                            true,
                            run};

}  // namespace aloft
