#include "observe/probe/operands.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "observe/probe/tap_words.h"
#include "types/step_program.h"

namespace aloft::probe {

namespace {

using Operands = std::vector<LookedAt::Operand>;

// "matmul" of "h.0.mlp/matmul.backward#0".
std::string_view op_of(std::string_view call) {
  call.remove_prefix(call.rfind('/') + 1);
  return call.substr(0, call.find_first_of(".#"));
}

// Which member of a fused call it is; as many as there are where it is none.
std::size_t member_of(const Instruction& i, std::string_view call) {
  return static_cast<std::size_t>(std::ranges::find(i.members, call) - i.members.begin());
}

class Reader {
 public:
  Reader(const Program& program, const std::vector<LookedAt>& values) : program_(program) {
    for (std::size_t n = 0; n < program.instructions.size(); ++n)
      for (const BufferRef& out : program.instructions[n].out)
        writers_[out.buffer].push_back(static_cast<int>(n));
    for (const LookedAt& value : values) {
      const Instruction& taker = program.instructions[value.order];
      if (taker.call.op != Name("statistics")) continue;  // an update says what it adds
      const Version of = version(taker.in[0].buffer, static_cast<int>(value.order));
      looked_[of].push_back({value.name, taker.call.in[0]});
      if (is_of_op(value.name) && value.name == call_of(value.name)) given_.insert(value.name);
    }
  }

  Operands of(const LookedAt& value) const {
    const Instruction& taker = program_.instructions[value.order];
    if (!is_of_op(value.name) || taker.call.op != Name("statistics")) return {};
    const Version made = version(taker.in[0].buffer, static_cast<int>(value.order));
    if (made.second < 0) return {};
    const std::string_view call = call_of(value.name);
    const Instruction& i = program_.instructions[static_cast<std::size_t>(made.second)];
    const bool is_again = is_computed_again(i) && i.call.op == Name(op_of(call));
    if (is_again || (i.members.empty() && i.identity == call))
      return taken(i, made.second, 0, i.in.size());
    const std::size_t member = member_of(i, call);
    if (member == i.members.size()) return seen_as(made, call);
    if (i.call.op == Name(kFusedOp)) return taken_by_step(i, made.second, member);
    return i.members.size() < 2 ? Operands() : taken_by_part(i, made.second, member);
  }

 private:
  // A buffer behind the instruction that wrote it last; -1: nobody in this program.
  using Version = std::pair<int, int>;
  struct Looked {
    std::string name;
    TensorType type;
  };

  static bool is_of_op(std::string_view name) {
    return !name.starts_with(kCall) && !name.starts_with(kParameter);
  }

  Version version(int buffer, int before) const {
    const auto writers = writers_.find(buffer);
    if (writers == writers_.end()) return {buffer, -1};
    const auto next = std::ranges::lower_bound(writers->second, before);
    return {buffer, next == writers->second.begin() ? -1 : *std::prev(next)};
  }

  // Of several names that of an op, which is there whatever else is looked at; of values that lie
  // in one place, such as one in another shape, the one that is taken.
  std::string name_of_value(const Version& of, const TensorType& type) const {
    const auto known = looked_.find(of);
    if (known == looked_.end()) return "";
    const auto rank = [&](const Looked& l) {
      return std::pair(!(l.type.shape == type.shape), !is_of_op(l.name));
    };
    return std::ranges::min_element(known->second, {}, rank)->name;
  }
  LookedAt::Operand operand(const BufferRef& ref, int reader) const {
    const Version of = version(ref.buffer, reader);
    const bool is_backward =
        of.second >= 0 &&
        program_.instructions[static_cast<std::size_t>(of.second)].phase == Phase::Backward;
    return {name_of_value(of, ref.type), is_backward};
  }
  // Of the call itself what it takes from its operand number `from` on.
  Operands taken(const Instruction& i, int number, std::size_t from, std::size_t to) const {
    Operands all;
    for (std::size_t k = from; k < to; ++k) all.push_back(operand(i.in[k], number));
    return all;
  }
  // What a member gives, which may be within the call alone.
  LookedAt::Operand given_by(const Instruction& i, std::size_t member) const {
    const std::string& name = i.members[member];
    return {given_.contains(name) ? name : "", i.phase == Phase::Backward};
  }

  // Of an op that leaves a value where it lies, such as one in another shape, that value. The same
  // op at another place, which computes the same, takes it not.
  Operands seen_as(const Version& made, std::string_view call) const {
    const Instruction& i = program_.instructions[static_cast<std::size_t>(made.second)];
    for (const Looked& l : looked_.at(made)) {
      const std::string_view giver = call_of(l.name);
      const bool gives = giver == i.identity || member_of(i, giver) < i.members.size();
      if (is_of_op(l.name) && gives && op_of(giver) != op_of(call))
        return {{l.name, i.phase == Phase::Backward}};
    }
    return {};
  }

  Operands taken_by_step(const Instruction& i, int number, std::size_t member) const {
    const AttrValue* said = i.call.attrs.find("program");
    if (!said) return {};
    const auto inputs = static_cast<int>(i.in.size());
    const StepProgram program = parse_step_program(std::get<std::string>(*said), inputs);
    if (program.steps.size() != i.members.size()) return {};
    Operands all;
    for (const int v : program.steps[member].in)
      all.push_back(v < inputs ? operand(i.in[static_cast<std::size_t>(v)], number)
                               : given_by(i, static_cast<std::size_t>(v - inputs)));
    return all;
  }

  // Two calls as one: a norm behind the sum before it, a gradient before the addition behind it, a
  // loss behind its projection. What the first gives is the operand of the second that it begins
  // with, or, of an addition, the second one.
  Operands taken_by_part(const Instruction& i, int number, std::size_t member) const {
    const std::size_t last = i.members.size() - 1;
    const std::string op = i.call.op.str();
    const std::string first_op(op_of(i.members[0])), last_op(op_of(i.members[last]));
    const std::size_t count = i.in.size();
    if (op == first_op + "_add" && last_op == "add" && count >= 1) {
      if (member == 0) return taken(i, number, 1, count);
      return {operand(i.in[0], number), given_by(i, 0)};
    }
    if (op == first_op + "_" + last_op && count >= 2) {
      if (member == 0) return taken(i, number, 0, 2);
      if (member != last) return {};
      Operands all = {given_by(i, last - 1)};
      const Operands rest = taken(i, number, 2, count);
      all.insert(all.end(), rest.begin(), rest.end());
      return all;
    }
    // Loss and gradients in one sweep: what the gradients are made of.
    return op == first_op + "_sweep" && member == last ? taken(i, number, 0, count) : Operands();
  }

  const Program& program_;
  std::map<int, std::vector<int>> writers_;        // of each buffer, in order
  std::map<Version, std::vector<Looked>> looked_;  // what is looked at
  std::set<std::string> given_;                    // first results of calls, of these
};

}  // namespace

void note_operands(const Program& program, std::vector<LookedAt>& values) {
  const Reader reader(program, values);
  for (LookedAt& value : values) value.operands = reader.of(value);
}

}  // namespace aloft::probe
