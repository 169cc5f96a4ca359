// What every Plan owes, whoever made it: each instruction reads what the one before it in the order
// of events wrote, and nobody else's bytes.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/happens_before.h"
#include "plan/lifetime.h"
#include "plan/plan.h"

namespace aloft {
namespace {

// Bytes of an arena and who owns them.
struct Owned {
  std::size_t begin = 0, end = 0;
  std::string owner;
};

// Two of them that share bytes; null where none do.
std::pair<const Owned*, const Owned*> find_shared(std::vector<Owned>& all) {
  std::sort(all.begin(), all.end(),
            [](const Owned& a, const Owned& b) { return a.begin < b.begin; });
  const Owned* furthest = nullptr;
  for (const Owned& o : all) {
    if (o.begin == o.end) continue;
    if (furthest && furthest->end > o.begin) return {furthest, &o};
    if (!furthest || furthest->end < o.end) furthest = &o;
  }
  return {nullptr, nullptr};
}

class ProgramVerifier {
 public:
  ProgramVerifier(const Plan& plan, const VariablesOf& variables, const Program& program)
      : plan_(plan), variables_(variables), p_(program) {}

  void run() const {
    check_references();
    check_lengths();
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) check_buffer(static_cast<int>(b));
    check_arenas();
    check_activations();
    const HappensBefore order(p_);
    if (const auto race = find_race(p_, order))
      fail("a race for buffer '" + buffer(race->buffer).name + "' with " +
               p_.instructions[static_cast<std::size_t>(race->a)].identity,
           race->b);
    check_values(order);
  }

 private:
  [[noreturn]] void fail(const std::string& what, int instruction = -1) const {
    throw InternalError("the plan is broken: " + what)
        .line("prog", p_.name)
        .line("instr", instruction < 0
                           ? "-"
                           : p_.instructions[static_cast<std::size_t>(instruction)].identity);
  }

  const PlannedBuffer& buffer(int b) const { return p_.buffers[static_cast<std::size_t>(b)]; }

  void check_reference(const BufferRef& r, int at) const {
    if (r.buffer < 0 || r.buffer >= static_cast<int>(p_.buffers.size()))
      fail("a reference is out of range", at);
    const PlannedBuffer& b = buffer(r.buffer);
    if (b.homes < 1 || r.type.max_bytes() > b.bytes / static_cast<std::size_t>(b.homes))
      fail("a tensor is larger than its buffer: " + r.type.str(), at);
  }

  void check_references() const {
    for (const auto* list : {&p_.inputs, &p_.outputs})
      for (const NamedRef& r : *list) check_reference(r.ref, -1);
    for (int at = 0; at < static_cast<int>(p_.instructions.size()); ++at) {
      const Instruction& ins = p_.instructions[static_cast<std::size_t>(at)];
      for (const auto* refs : {&ins.in, &ins.out})
        for (const BufferRef& r : *refs) check_reference(r, at);
      if (ins.scratch >= static_cast<int>(p_.buffers.size()))
        fail("its scratch is out of range", at);
      if (ins.form != ProductForm::Plain && ins.form != ins.call.form)
        fail("its products are computed in a form that nobody asked for", at);
      check_results(ins, at);
      if (ins.copy)
        check_copy(ins, at);
      else
        check_at_hand(ins, at);
    }
  }

  // Every symbolic length is one of the program's, within the same bound.
  void check_lengths() const {
    std::map<Name, std::int64_t> bounds;
    for (std::size_t s = 0; s < p_.symbols.size(); ++s)
      if (!bounds.emplace(p_.symbols[s], p_.bounds[s]).second)
        fail("two lengths are named " + p_.symbols[s].str());
    const auto check = [&](const TensorType& t, int at) {
      for (const Dim& d : t.shape) {
        if (d.is_constant()) continue;
        const auto it = bounds.find(d.symbol());
        if (it == bounds.end() || it->second != d.bound())
          fail("a length that is none of the program's: " + t.str(), at);
      }
    };
    for (const auto* list : {&p_.inputs, &p_.outputs})
      for (const NamedRef& r : *list) check(r.ref.type, -1);
    for (int at = 0; at < static_cast<int>(p_.instructions.size()); ++at)
      for (const auto* refs : {&p_.instructions[at].call.in, &p_.instructions[at].call.out})
        for (const TensorType& t : *refs) check(t, at);
  }

  // Each has memory of its own; a result may lie where an operand does, as its kernel allows.
  void check_results(const Instruction& ins, int at) const {
    std::set<int> written;
    for (const BufferRef& r : ins.out)
      if (!written.insert(r.buffer).second) fail("two results share a buffer", at);
    if (ins.scratch < 0) return;
    for (const BufferRef& r : ins.in) written.insert(r.buffer);
    if (written.contains(ins.scratch)) fail("its scratch is an operand or a result", at);
  }

  void check_copy(const Instruction& ins, int at) const {
    const bool is_one = ins.in.size() == 1 && ins.out.size() == 1 &&
                        ins.in[0].type.max_bytes() == ins.out[0].type.max_bytes();
    if (!is_one) fail("a copy has one operand and one result of its size", at);
    if (ins.in[0].buffer == ins.out[0].buffer) fail("a copy goes where it comes from", at);
    const std::size_t bytes = ins.in[0].type.max_bytes();
    const std::size_t from = buffer(ins.in[0].buffer).bytes - bytes,
                      to = buffer(ins.out[0].buffer).bytes - bytes;
    if (ins.copy->from > from || ins.copy->to > to) fail("a copy leaves its buffers", at);
  }

  // Kernels work on the memory of the device that the program runs on.
  void check_at_hand(const Instruction& ins, int at) const {
    const auto check = [&](int b) {
      const ArenaAt where = buffer(b).arena_at();
      if (where.device != 0 || where.space != Space::Device)
        fail("it works on buffer '" + buffer(b).name + "', which lies in " + name_of(where), at);
    };
    for (const auto* refs : {&ins.in, &ins.out})
      for (const BufferRef& r : *refs) check(r.buffer);
    if (ins.scratch >= 0) check(ins.scratch);
  }

  void check_buffer(int at) const {
    const PlannedBuffer& b = buffer(at);
    const auto arena = plan_.arena_bytes.find(b.arena_at());
    const std::size_t room = arena == plan_.arena_bytes.end() ? 0 : arena->second;
    if (b.bytes > 0 && (b.bytes > room || b.placement.offset > room - b.bytes))
      fail("buffer '" + b.name + "' lies outside its arena");
    if (const StateSlot* s = variables_.in(b)) check_variable(b, *s);
    const bool is_input = std::any_of(p_.inputs.begin(), p_.inputs.end(),
                                      [&](const NamedRef& r) { return r.ref.buffer == at; });
    if (b.homes > 1 && (!is_input || b.arena != Arena::Staging ||
                        b.bytes % (static_cast<std::size_t>(b.homes) * kAlignment) != 0))
      fail("buffer '" + b.name + "' has homes that are none");
  }

  void check_variable(const PlannedBuffer& b, const StateSlot& s) const {
    const auto k = static_cast<std::size_t>(b.placement.shard.index);
    if (k >= s.parts.size() || b.placement != s.parts[k] || b.bytes != s.range(k).bytes)
      fail("buffer '" + b.name + "' lies elsewhere than the variable that it holds");
  }

  // But for activations nothing gives its bytes on while the program runs.
  void check_arenas() const {
    std::map<ArenaAt, std::vector<Owned>> owned;
    for (const PlannedBuffer& b : p_.buffers)
      if (b.arena != Arena::Activations && !variables_.in(b))
        owned[b.arena_at()].push_back({b.placement.offset, b.placement.offset + b.bytes, b.name});
    if (owned.empty()) return;
    for (const StateSlot& s : plan_.state)
      for (std::size_t k = 0; k < s.parts.size(); ++k)
        if (const auto it = owned.find(s.arena_at(k)); it != owned.end())
          it->second.push_back(
              {s.parts[k].offset, s.parts[k].offset + s.range(k).bytes, s.id.str()});
    for (auto& [at, all] : owned)
      if (const auto [a, b] = find_shared(all); a)
        fail("'" + a->owner + "' and '" + b->owner + "' lie over each other in " + name_of(at));
  }

  void check_activations() const {
    std::vector<Lifetime> lives;
    std::vector<std::size_t> offsets;
    for (const PlannedBuffer& b : p_.buffers)
      if (b.arena == Arena::Activations) {
        lives.push_back({b.first, b.last, b.bytes});
        offsets.push_back(b.placement.offset);
      }
    if (const auto overlap = find_overlap(lives, offsets))
      fail("live buffers overlap: " + std::to_string(overlap->first) + " and " +
           std::to_string(overlap->second));
  }

  void check_values(const HappensBefore& order) const {
    std::vector<bool> written(p_.buffers.size(), false);
    for (std::size_t b = 0; b < p_.buffers.size(); ++b)
      written[b] = variables_.in(p_.buffers[b]) != nullptr;
    for (const NamedRef& r : p_.inputs) written[static_cast<std::size_t>(r.ref.buffer)] = true;
    for (int at = 0; at < static_cast<int>(p_.instructions.size()); ++at) {
      const Instruction& ins = p_.instructions[static_cast<std::size_t>(at)];
      const auto check_life = [&](int which) {
        const PlannedBuffer& b = buffer(which);
        if (order.first(at) < b.first || order.last(at) > b.last)
          fail("it uses buffer '" + b.name + "' outside its life", at);
      };
      for (const BufferRef& r : ins.in) {
        check_life(r.buffer);
        if (!written[static_cast<std::size_t>(r.buffer)])
          fail("it reads a buffer that nothing wrote", at);
      }
      for (const BufferRef& r : ins.out) {
        check_life(r.buffer);
        if (buffer(r.buffer).homes > 1) fail("it writes an input", at);
        written[static_cast<std::size_t>(r.buffer)] = true;
      }
      if (ins.scratch >= 0) check_life(ins.scratch);
    }
    for (const NamedRef& r : p_.outputs) {
      if (!written[static_cast<std::size_t>(r.ref.buffer)])
        fail("nothing writes the output '" + r.name + "'");
      if (buffer(r.ref.buffer).last < static_cast<int>(p_.instructions.size()))
        fail("the output '" + r.name + "' does not live to the end");
    }
  }

  const Plan& plan_;
  const VariablesOf& variables_;
  const Program& p_;
};

// Variables share no bytes.
void verify_state(const Plan& plan) {
  std::map<ArenaAt, std::vector<Owned>> owned;
  for (const StateSlot& s : plan.state)
    for (std::size_t k = 0; k < s.parts.size(); ++k)
      owned[s.arena_at(k)].push_back(
          {s.parts[k].offset, s.parts[k].offset + s.range(k).bytes, s.id.str()});
  for (auto& [at, all] : owned)
    if (const auto [a, b] = find_shared(all); a)
      throw InternalError("the plan is broken: the variables '" + a->owner + "' and '" + b->owner +
                          "' lie over each other in " + name_of(at));
}

// Values wait in homes while other programs run: none of these has its inputs there.
void verify_homes(const Plan& plan) {
  struct Range {
    std::size_t begin, end;
    const Program* program;
    bool has_homes;
  };
  std::vector<Range> all;
  for (const Program& p : plan.programs)
    for (const PlannedBuffer& b : p.buffers)
      if (b.arena == Arena::Staging && b.bytes > 0)
        all.push_back({b.placement.offset, b.placement.offset + b.bytes, &p, b.homes > 1});
  std::sort(all.begin(), all.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  const Range* reaches[2] = {};  // the furthest so far; of those with homes
  for (const Range& r : all) {
    if (const Range* o = reaches[r.has_homes ? 0 : 1]; o && o->end > r.begin)
      throw InternalError("the plan is broken: inputs lie over another one's homes")
          .line("prog", r.program->name + " and " + o->program->name);
    for (const bool homes : {false, true})
      if (!homes || r.has_homes)
        if (const Range*& o = reaches[homes]; !o || o->end < r.end) o = &r;
  }
}

}  // namespace

void verify(const Plan& plan) {
  verify_state(plan);
  verify_homes(plan);
  const VariablesOf variables(plan);
  for (const Program& p : plan.programs) ProgramVerifier(plan, variables, p).run();
}

}  // namespace aloft
