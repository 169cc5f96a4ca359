// A Plan for people: arenas, where the peak is and what makes it, instructions, buffers.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "plan/lifetime.h"
#include "plan/plan.h"
#include "plan/summary.h"

namespace aloft {
namespace {

// Bytes of activations alive during each instruction, and one entry for the program's end.
std::vector<std::size_t> alive_bytes(const Program& p) {
  std::vector<std::size_t> alive(p.instructions.size() + 1, 0);
  for (const PlannedBuffer& b : p.buffers) {
    if (b.arena != Arena::Activations) continue;
    for (int i = b.first; i <= b.last && i < static_cast<int>(alive.size()); ++i)
      alive[static_cast<std::size_t>(i)] += aligned(b.bytes);
  }
  return alive;
}

void print_arenas(const Plan& plan, std::string& out) {
  out += "arenas\n";
  for (const auto& [arena, bytes] : plan.arena_bytes)
    out += fmt::format("  {:<14}{:>14}  {}\n", name_of(arena), grouped(bytes), human_bytes(bytes));
  out += fmt::format("  {:<14}{:>14}  {}\n", "peak", grouped(plan.peak_bytes()),
                     human_bytes(plan.peak_bytes()));
}

// The instruction at which most activations are alive, and the tensors that make it, largest first.
void print_peak(const Program& p, std::string& out) {
  const std::vector<std::size_t> alive = alive_bytes(p);
  const auto top = std::max_element(alive.begin(), alive.end());
  if (top == alive.end() || *top == 0) return;
  const int at = static_cast<int>(top - alive.begin());
  std::size_t end = 0;
  std::vector<const PlannedBuffer*> there;
  for (const PlannedBuffer& b : p.buffers) {
    if (b.arena != Arena::Activations) continue;
    end = std::max(end, b.placement.offset + aligned(b.bytes));
    if (b.first <= at && at <= b.last && b.bytes > 0) there.push_back(&b);
  }
  const bool inside = at < static_cast<int>(p.instructions.size());
  out +=
      fmt::format("  most activations at instruction {}{}: {} alive, placed in {} (at least {})\n",
                  at, inside ? " " + p.instructions[at].identity : " (the end)", human_bytes(*top),
                  human_bytes(end), human_bytes(p.activation_lower_bound));
  std::stable_sort(there.begin(), there.end(), [](const PlannedBuffer* a, const PlannedBuffer* b) {
    return a->bytes > b->bytes;
  });
  constexpr std::size_t kShown = 16;
  for (std::size_t i = 0; i < std::min(kShown, there.size()); ++i)
    out += fmt::format("    {:>12}  {:5.1f} %  {:>5} to {:<5} {}\n", human_bytes(there[i]->bytes),
                       100.0 * static_cast<double>(there[i]->bytes) / static_cast<double>(*top),
                       there[i]->first, there[i]->last, there[i]->name);
  if (there.size() > kShown) {
    const std::size_t rest =
        std::accumulate(there.begin() + kShown, there.end(), std::size_t{0},
                        [](std::size_t sum, const PlannedBuffer* b) { return sum + b->bytes; });
    out +=
        fmt::format("    {:>12}  in {} smaller ones\n", human_bytes(rest), there.size() - kShown);
  }
}

std::string refs(const std::vector<BufferRef>& list) {
  std::string out;
  for (const BufferRef& r : list)
    out += fmt::format("{}%{}:{}", out.empty() ? "" : ", ", r.buffer, r.type.str());
  return out;
}

void print_instructions(const Program& p, std::string& out) {
  out += "  instructions\n";
  for (std::size_t i = 0; i < p.instructions.size(); ++i) {
    const Instruction& ins = p.instructions[i];
    out += fmt::format("  {:>5} {:<8} {} = {}{}({})", i, name_of(ins.phase), refs(ins.out),
                       ins.call.op.str(), ins.call.attrs.str(), refs(ins.in));
    if (ins.call.form != ProductForm::Plain) out += fmt::format(" as {}", name_of(ins.call.form));
    out += fmt::format("  {}", ins.kernel);
    if (ins.form != ProductForm::Plain) out += fmt::format(" as {}", name_of(ins.form));
    if (ins.scratch >= 0) out += fmt::format(" scratch %{}", ins.scratch);
    if (ins.stream > 0) out += fmt::format(" stream {}", ins.stream);
    for (const int event : ins.waits) out += fmt::format(" waits !{}", event);
    if (ins.signals >= 0) out += fmt::format(" signals !{}", ins.signals);
    out += fmt::format("  {}\n", ins.identity);
  }
}

void print_buffers(const Program& p, std::string& out) {
  out += "  buffers\n";
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const PlannedBuffer& x = p.buffers[b];
    out += fmt::format("  %{:<5} {:<11} at {:>12} {:>12} bytes  {:>5} to {:<5} {}", b,
                       name_of(x.arena_at()), x.placement.offset, x.bytes, x.first, x.last, x.name);
    if (x.placement.layout != Layout::Dense) out += fmt::format(" {}", name_of(x.placement.layout));
    if (x.placement.shard.count > 1)
      out += fmt::format(" part {} of {}", x.placement.shard.index + 1, x.placement.shard.count);
    if (x.homes > 1) out += fmt::format(" in {} homes", x.homes);
    out += "\n";
  }
  for (const NamedRef& r : p.outputs)
    out += fmt::format("  {} {} = %{}:{}\n", r.is_tap ? "tap" : "output", r.name, r.ref.buffer,
                       r.ref.type.str());
}

// `is_whole`: with every instruction and every buffer.
std::string print_plan(const Plan& plan, bool is_whole) {
  std::string out =
      fmt::format("plan {} for {}, {} threads\n", plan.signature(), plan.backend, plan.threads);
  for (const auto& [key, value] : plan.choices) out += fmt::format("  chose {} = {}\n", key, value);
  print_arenas(plan, out);
  for (const Program& p : plan.programs) {
    out += fmt::format("program {}: {} instructions, {} buffers", p.name, p.instructions.size(),
                       p.buffers.size());
    for (std::size_t s = 0; s < p.symbols.size(); ++s)
      out += fmt::format(", {}<={}", p.symbols[s].str(), p.bounds[s]);
    out += "\n";
    print_peak(p, out);
    if (!is_whole) continue;
    print_instructions(p, out);
    print_buffers(p, out);
  }
  return out;
}

}  // namespace

std::string print(const Plan& plan) { return print_plan(plan, true); }

std::string print_summary(const Plan& plan) { return print_plan(plan, false); }

std::string arenas_text(const Plan& plan, int device) {
  std::string parts;
  for (const auto& [arena, bytes] : plan.arena_bytes)
    if (bytes > 0 && arena.device == device && arena.space == Space::Device)
      parts +=
          fmt::format("{}{} {}", parts.empty() ? "" : ", ", name_of(arena), human_bytes(bytes));
  return "the plan of a step (" + parts + ")";
}

}  // namespace aloft
