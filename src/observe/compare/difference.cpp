#include "observe/compare/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "observe/compare/masks.h"
#include "observe/compare/msprobe_gradients.h"
#include "observe/compare/noise.h"
#include "observe/compare/operand_pairs.h"
#include "observe/compare/overflowed_norm.h"
#include "observe/compare/repeated.h"
#include "observe/compare/small_loss.h"
#include "observe/compare/stored_update.h"
#include "observe/compare/taken_parameters.h"
#include "observe/compare/tied_parameters.h"
#include "observe/compare/type_class.h"
#include "types/float_step.h"

namespace aloft::compare {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Noise is a typical error, and each figure shows one of many values: several times as much is
// still noise. A call may enlarge what its inputs are off: a softmax by its logits, a norm by what
// it divides by.
constexpr double kTimesNoise = 4, kTimesInputs = 8;
// An extreme of gradients is a single element's, which a gate may let through or not.
constexpr double kTimesGate = 2;
// Of a call whose inputs have few digits.
constexpr double kTimesSmall = 2;
constexpr double kUnitLow = 0x1p-24;  // units of low types are more

bool is_float(const Record& r) { return unit_of(r.type) > 0; }

double or_zero(const Figure& f) {
  return f.number && std::isfinite(*f.number) ? std::abs(*f.number) : 0;
}

// |a - b| / scale; 0 of equal infinities and of two NaN, infinite where one alone is not finite.
double apart(double a, double b, double scale) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b) || !(scale > 0)) return kInfinite;
  return std::abs(a - b) / scale;
}

// Elements without a gradient make that of either run longer: it is measured by the longer one.
bool is_vectors_update(const Record& n, const Record& b) {
  return n.part == Part::Update && std::min(n.shape.size(), b.shape.size()) < 2;
}

// Nothing where there is no figure that both have.
std::optional<Difference> of_figures(const Record& n, const Record& b, double natural) {
  const double elements = std::max(1.0, b.elements());
  const double norm = std::max({or_zero(b.norm), natural});
  const double typical = norm / std::sqrt(elements);
  double largest = std::max({or_zero(b.max), or_zero(b.min), natural / std::sqrt(elements)});
  if (is_vectors_update(n, b)) largest = std::max({largest, or_zero(n.max), or_zero(n.min)});
  // What is hidden says nothing of how large the others are.
  const bool are_masks = are_masks_both(n, b);
  if (are_masks) largest = or_zero(b.max);
  const auto scale_or = [](double scale, double otherwise) {
    return scale > 0 ? scale : otherwise;
  };
  const auto larger = [](const Figure& x, const Figure& y) {
    return std::max(or_zero(x), or_zero(y));
  };
  // Of a low type rounding decides which of those near its end are beyond it.
  const auto beyond = [&](const Figure& x, const Figure& y) {
    const bool is_low = std::max(unit_of(n.type), unit_of(b.type)) > kUnitLow;
    return is_low ? 1 / std::sqrt(std::max(1.0, larger(x, y))) : 0;
  };
  struct Row {
    const char* name;
    const Figure &n, &b;
    double scale, noise;
  };
  const double taken = std::max(figure_noise(n), figure_noise(b));
  const Row rows[] = {{"Norm", n.norm, b.norm, scale_or(norm, or_zero(n.norm)), taken},
                      {"Max", n.max, b.max, scale_or(largest, or_zero(n.max)), 0},
                      {"Min", n.min, b.min, scale_or(largest, or_zero(n.min)), 0},
                      {"Mean", n.mean, b.mean, scale_or(typical, or_zero(n.mean)), taken},
                      // What is not finite hides all others from the figures above.
                      {"nan", n.nan, b.nan, larger(n.nan, b.nan), 0},
                      {"inf", n.inf, b.inf, larger(n.inf, b.inf), beyond(n.inf, b.inf)},
                      {"-inf", n.minus_inf, b.minus_inf, larger(n.minus_inf, b.minus_inf),
                       beyond(n.minus_inf, b.minus_inf)}};
  const auto is_hidden_by_mask = [&](const Figure& f) {
    // What is the end of the type in one run may be beyond it in the other.
    if (&f == &n.minus_inf) return n.min.number != b.min.number;
    return &f == &n.norm || &f == &n.min || &f == &n.mean;
  };
  Difference worst;
  bool has_any = false;
  for (const Row& row : rows) {
    if (!row.n.number || !row.b.number || (are_masks && is_hidden_by_mask(row.n))) continue;
    const bool is_count = &row.n == &n.nan || &row.n == &n.inf || &row.n == &n.minus_inf;
    if (!is_count && !std::exchange(has_any, true)) worst.of = row.name;
    const double size = std::max(0.0, apart(*row.n.number, *row.b.number, row.scale) - row.noise);
    // Of figures that are as far off the first is named.
    if (size > worst.size * (1 + 1e-9)) worst.size = size, worst.of = row.name;
  }
  return has_any ? std::optional(worst) : std::nullopt;
}

// Whether what an op of Aloft's gives in the backward pass may be no gradient, such as an
// activation in another shape, or one that is computed again: only the figures say it. Gradients'
// own ops leave no doubt, nor do dumps of others, who look at gradients alone.
bool may_be_no_gradient(const EntryPair& p) {
  const bool is_of_op = !p.npu->tap.empty() || !p.bench->tap.empty();
  return is_of_op && !p.npu->kind.ends_with("_grad") && !p.bench->kind.ends_with("_grad");
}
// Whether its name says that it is none: that of the backward pass stands behind the op's,
// "h.0/add.backward#1". A value of the forward pass may be had from an op of the backward one.
bool is_forward_value(const Entry& e) {
  const std::size_t slash = e.tap.rfind('/');
  return slash != std::string::npos && e.tap.find('.', slash) == std::string::npos;
}

// Goes through the moments and keeps what is needed to judge the next.
class Judge {
 public:
  Judge(const Pairs& pairs, const ElementsOf& elements_of, const Circumstances& circumstances)
      : elements_of_(elements_of),
        circumstances_(circumstances),
        sizes_(common_sizes(pairs)),
        taken_parameters_(pairs),
        tied_(pairs),
        small_loss_(circumstances.loss) {
    if (circumstances.drift) noise_.add_drift(circumstances.drift->typical());
    bool both_have_gradients = false;
    for (const EntryPair& p : pairs.entries)
      if (p.bench) {
        paired_[key(*p.bench)] = &p;
        EntryPair const*& last = last_[{p.bench->path, p.bench->direction}];
        if (!last || last->bench->call < p.bench->call) last = &p;
        of_npu_[{p.npu->path, p.npu->direction}] = &p;
        if (p.npu->direction == Direction::ParametersGrad) both_have_gradients = true;
        if (p.npu->direction == Direction::ParametersUpdate) has_updates_ = true;
      }
    for (const Entry* b : pairs.only_bench)
      if (has_updates_ && b->direction == Direction::ParametersUpdate)
        without_updates_.push_back(b);
    if (!both_have_gradients) return;
    // Sums that come before the step's have no partner, and need none (running_sums.h).
    for (const Entry* b : pairs.only_bench)
      if (b->direction == Direction::ParametersGrad && !last_.contains({b->path, b->direction}))
        without_gradients_[key_of(b->path, 0)] = b;
    has_gradients_ = true;
  }

  void look(const Moment& m, std::vector<Compared>& all) {
    if (!m.entry->bench) return look_for_more(m, all);
    // Of what an op of Aloft's takes a dump may have a part: it is looked at with what the op
    // gives, and does not say how far that may be off.
    const bool is_op = is_of_ops(*m.entry->npu, *m.entry->bench);
    const bool has_own_inputs =
        !is_op && std::ranges::any_of(m.entry->records, [](const RecordPair& r) {
          return r.npu && r.bench && r.npu->part == Part::Input && is_float(*r.npu);
        });
    const bool is_update = m.entry->npu->direction == Direction::ParametersUpdate;
    if (m.entry->npu->direction != Direction::Forward)
      begin_backward();
    else if (m.gives)
      small_loss_.note_logits(*m.entry);
    if (!is_update && (m.gives || has_own_inputs)) noise_.add(*m.entry);
    const double& inputs = inputs_[m.entry];
    const std::size_t begin = all.size();
    if (m.gives) look_for_missing(m, all);
    for (const RecordPair& r : m.entry->records) {
      if (!r.npu || !r.bench) continue;
      const bool is_given = r.npu->part != Part::Input && r.npu->part != Part::Parameter;
      if (is_op ? !m.gives : is_given != m.gives) continue;
      if (are_other_gradients(*m.entry, other_direction(*m.entry->bench, Direction::Forward), r))
        continue;
      const double factor = factor_of(*m.entry, r);
      const double taken = has_own_inputs ? std::max(inputs, taken_around(m)) : seen_;
      auto judged = judge(m, r, factor, taken);
      if (!judged) continue;
      const bool is_equal = judged->difference.size == 0 && r.npu->type == r.bench->type;
      are_equal_ = are_equal_ && is_equal;
      if (judged->difference.is_more() && factor != 1 && may_be_no_gradient(*m.entry))
        if (auto as_it_is = judge(m, r, 1, taken); as_it_is && !as_it_is->difference.is_more())
          judged = std::move(as_it_is);
      if (judged->difference.is_more() && hands_on_gradient(*m.entry, r)) continue;
      if (!judged->difference.is_more()) note(m, r, *judged);
      all.push_back({m, r, std::move(judged->difference), judged->factor,
                     r.npu->part == Part::Parameter && is_turned(r)});
    }
    if (m.gives && are_equal_) noise_.forget();
    measure_cancelled(m, all, begin);
  }

  // What has no gradient where nothing else of the backward pass is seen: a module that is left out
  // of it.
  void finish(std::vector<Compared>& all) const {
    const auto add = [&](const Entry& e) {
      if (const EntryPair* const forward = other_direction(e, Direction::Forward))
        for (const Record& b : e.records) add_missing({forward, true}, e, {nullptr, &b}, all);
    };
    for (const auto& [key, entry] : without_gradients_) add(*entry);
    for (const Entry* entry : without_updates_) add(*entry);
  }

  // Of what was computed last.
  double noise() const { return typical(seen_); }
  // Of the loss beside that.
  double of_loss() const { return small_loss_.of_loss(noise_.coarsest()); }

 private:
  void begin_backward() {
    if (std::exchange(is_backward_, true)) return;
    if (const double lost = small_loss_.of_gradient(noise_.coarsest()); lost > 0)
      noise_.add_cancelled(lost);
  }
  // What a module gives that multiplies by a matrix has come out of the loss: what a loss, or a
  // softmax, takes may be exact, and lose its digits there. All gradients behind that are made of
  // it, and what is measured of it counts for them, if it is less than what was derived.
  void measure_cancelled(const Moment& m, const std::vector<Compared>& all, std::size_t begin) {
    if (!(noise_.cancelled() > 0) || !m.gives || !m.entry->npu->is_module ||
        m.entry->npu->direction != Direction::Backward || !has_matrix(*m.entry))
      return;
    double most = -1;
    for (const Compared& c : std::span(all).subspan(begin)) {
      if (!c.records.npu || !c.records.bench || c.difference.is_more()) return;
      if (is_float(*c.records.npu) && c.records.npu->elements() > 1)
        most = std::max(
            most, SmallLoss::length_of_error(c.difference.size, elements(c.records) != nullptr));
    }
    if (most >= 0) noise_.measure_cancelled(most);
  }
  bool has_matrix(const EntryPair& entry) const {
    const EntryPair* const forward = other_direction(*entry.bench, Direction::Forward);
    return forward && std::ranges::any_of(forward->bench->records, [](const Record& r) {
             return r.part == Part::Parameter && r.shape.size() > 1;
           });
  }

  const ElementFigures* elements(const RecordPair& r) const {
    const ElementFigures* const e = elements_of_(r);
    return e && e->unreadable.empty() ? e : nullptr;
  }
  // `small`: what inputs are off that have few digits because they are so small.
  double typical(double inputs, double small = 0) const {
    return std::min(kTimesNoise * noise_.level() + kTimesInputs * inputs,
                    noise_.most() + kTimesSmall * small);
  }

  bool is_turned(const RecordPair& r) const {
    const ElementFigures* const e = elements_of_(r);
    return e && e->is_turned;
  }

  // A pair's difference, with what is allowed there.
  struct Judged {
    Difference difference;
    double size = 0;  // as the call's results may follow it
    double factor = 1;
    double small = 0;  // of what is allowed, that for having few digits
    bool is_parameter = false;
  };

  // What is off by no more than is allowed: so much what is computed of it may be.
  void note(const Moment& m, const RecordPair& r, const Judged& judged) {
    const Difference& d = judged.difference;
    if (!m.gives) {
      inputs_[m.entry] = std::max(inputs_[m.entry], judged.size);
      if (d.size > d.allowed - judged.small)
        small_[m.entry] = std::max(small_[m.entry], judged.size);
    }
    if (!judged.is_parameter && r.npu->part != Part::Update)
      seen_ = std::max(seen_, std::min(d.size, noise_.most()));
  }
  // What a call takes in the backward pass may come from what the module around it takes, by a
  // kernel that nobody sees: in low types attention's gradients of queries and keys are what is
  // left of much larger terms.
  double taken_around(const Moment& m) const {
    const Entry& e = *m.entry->bench;
    const std::size_t dot = e.path.rfind('.');
    if (m.gives || e.direction != Direction::Backward || !(noise_.coarsest() > kUnitLow) ||
        dot == std::string::npos)
      return 0;
    Entry around;
    around.path = e.path.substr(0, dot), around.call = e.call;
    const auto it = inputs_.find(other_direction(around, Direction::Backward));
    return it == inputs_.end() ? 0 : it->second;
  }
  // Of a parameter's gradient what reaches its module counts.
  double small_inputs(const EntryPair& entry) const {
    const bool is_sum = entry.npu->direction == Direction::ParametersGrad;
    const auto it =
        small_.find(is_sum ? other_direction(*entry.bench, Direction::Backward) : &entry);
    return it == small_.end() ? 0 : it->second;
  }

  // The step between the smallest numbers of the types that a call has, in either run, beside the
  // size by which a figure is measured: numbers that are not much larger have few digits. Half of
  // it is the rounding of the value itself, and half that of what the call makes on the way to it.
  // Those of a parameter's gradient are those of what reaches its module.
  double of_few_digits(const Moment& m, const RecordPair& r, const Judged& judged,
                       double natural) const {
    const auto least_step = [](const Entry& e, const Record& of) {
      // Of what is made in f64 a coarser operand takes no digits: it is as exact as it is stored.
      if (float_type_of(of.type) == DType::F64) return step_at(DType::F64, 0);
      double most = 0;
      for (const Record& record : e.records)
        if (const auto type = float_type_of(record.type)) most = std::max(most, step_at(*type, 0));
      return most;
    };
    const EntryPair* const reached = r.npu->part == Part::Gradient
                                         ? other_direction(*m.entry->bench, Direction::Backward)
                                         : m.entry;
    if (!reached) return 0;
    const double roundings = least_step(*reached->npu, *r.npu) * std::abs(judged.factor) +
                             least_step(*reached->bench, *r.bench);
    if (r.npu->part == Part::Gradient) {
      const Record* const reaches = reaching(*m.entry);
      const double norm = reaches ? or_zero(reaches->norm) : 0;
      return norm > 0 ? kTimesSmall * roundings * std::sqrt(reaches->elements()) / norm : 0;
    }
    const std::string& of = judged.difference.of;
    const bool is_extreme = of == "Max" || of == "Min" || of == "an element";
    const auto size = [&](const Record& record, double times) {
      const double root = std::sqrt(std::max(1.0, record.elements()));
      return is_extreme ? times * std::max(or_zero(record.max), or_zero(record.min))
                        : times * or_zero(record.norm) / root;
    };
    double scale =
        std::max(size(*r.bench, 1), natural / std::sqrt(std::max(1.0, r.bench->elements())));
    if (!(scale > 0)) scale = size(*r.npu, std::abs(judged.factor));
    return scale > 0 ? roundings / scale : 0;
  }
  std::optional<Judged> judge(const Moment& m, const RecordPair& r, double factor,
                              double inputs) const {
    auto d = difference(*m.entry, r, factor);
    if (!d) return std::nullopt;
    Judged judged{*std::move(d), 0, factor};
    judged.size = judged.difference.size;
    // Of a function that takes a parameter the two are one value, which has one limit.
    const TakenParameter taken = taken_parameters_.of(*m.entry, r);
    judged.is_parameter = taken.parameter || r.npu->part == Part::Parameter;
    const bool is_whole = judged.is_parameter && is_float(*r.npu) && r.has_same_size();
    if (const ElementFigures* const e = is_whole ? elements(r) : nullptr) {
      judged.difference = taken.parameter ? of_parameter(taken, *e, typical(inputs))
                                          : of_parameter({m.entry->npu, r.npu}, *e, stored(m, r));
      judged.size = e->relative_distance;
    } else if (is_float(*r.npu)) {
      judged.difference.allowed = allowed(m, r, inputs);
      if (taken.parameter) judged.difference.allowed += drift_of(taken);
      if (r.npu->part != Part::Parameter && r.npu->part != Part::Update)
        judged.small = of_few_digits(m, r, judged, natural_size(*m.entry, r));
      judged.difference.allowed += judged.small;
      if (judged.difference.is_more() && is_of_a_gate(m, r, factor, judged.difference))
        judged.difference.allowed *= kTimesGate;
    }
    return judged;
  }

  // Of parameters that were trained apart in a low type: whether an extreme alone is off, by no
  // more than a gate (relu, max pooling) that is open in one run and closed in the other may make
  // it: such an element has a gradient or has none.
  bool is_of_a_gate(const Moment& m, const RecordPair& r, double factor,
                    const Difference& d) const {
    const bool is_extreme = d.of == "Max" || d.of == "Min";
    const bool is_backward = m.entry->npu->direction == Direction::Backward;
    if (!is_extreme || !is_backward || !(noise_.drift() > 0) || !(noise_.coarsest() > kUnitLow))
      return false;
    if (!(d.size <= kTimesGate * d.allowed)) return false;
    Record n = *r.npu, b = *r.bench;
    for (Record* const one : {&n, &b}) one->max.number.reset(), one->min.number.reset();
    const auto rest = difference({&n, &b}, factor, 0);
    return rest && rest->size <= d.allowed;
  }

  // Gradients of a scaled loss, or of the sum of several, are those of the mean loss times that.
  double factor_of(const EntryPair& entry, const RecordPair& r) const {
    const Direction d = entry.npu->direction;
    const bool is_gradient = d == Direction::Backward || d == Direction::ParametersGrad;
    const bool is_none = !is_float(*r.npu) || is_forward_value(*entry.npu);
    return is_gradient && !is_none ? circumstances_.gradient_factor : 1;
  }
  std::optional<Difference> difference(const EntryPair& entry, const RecordPair& r,
                                       double factor) const {
    const double natural = natural_size(entry, r);
    const bool flows = r.npu->part == Part::Input || r.npu->part == Part::Output;
    const auto repeated = flows ? as_repeated(r, sizes_) : std::nullopt;
    if (!repeated) return difference(r, factor, natural);
    // What flows back into each row is a part of what flows back into the one of all.
    if (entry.npu->direction != Direction::Forward) return std::nullopt;
    const bool is_npu_repeated = r.npu->elements() < r.bench->elements();
    return difference_of(
        {is_npu_repeated ? &*repeated : r.npu, is_npu_repeated ? r.bench : &*repeated}, nullptr,
        natural);
  }
  std::optional<Difference> difference(const RecordPair& r, double factor, double natural) const {
    if (factor == 1) return difference_of(r, elements(r), natural);
    Record scaled = *r.npu;
    for (Figure* f : {&scaled.max, &scaled.min, &scaled.mean, &scaled.norm})
      if (f->number) *f->number *= factor;
    scaled.hash.clear();
    RecordPair with_factor = r;
    with_factor.factor = factor;
    return difference_of({&scaled, r.bench}, elements(with_factor), natural);
  }
  static std::string key_of(const std::string& path, std::int64_t call) {
    return path + "#" + std::to_string(call);
  }
  static std::string key(const Entry& e) {
    return key_of(e.path, e.call) + "#" + std::to_string(static_cast<int>(e.direction));
  }
  const EntryPair* other_direction(const Entry& e, Direction d) const {
    Entry wanted;
    wanted.path = e.path, wanted.call = e.call, wanted.direction = d;
    if (const auto it = paired_.find(key(wanted)); it != paired_.end()) return it->second;
    // Of several micro-batches the last call alone has a partner.
    const auto last = last_.find({e.path, d});
    return last == last_.end() ? nullptr : last->second;
  }

  // Of a gradient or an update that one run alone has, in `e`: unless it has a partner there under
  // another name of its parameter.
  void add_missing(const Moment& m, const Entry& e, const RecordPair& r,
                   std::vector<Compared>& all) const {
    if (tied_.is_told_elsewhere(e.path, r.npu ? *r.npu : *r.bench, r.npu != nullptr)) return;
    const bool is_update = e.direction == Direction::ParametersUpdate;
    all.push_back({m, r, {kInfinite, 0, is_update ? "the update" : "the gradient"}});
  }
  bool may_lack(const Entry& e) const {
    if (e.direction == Direction::ParametersUpdate) return has_updates_;
    return e.direction == Direction::ParametersGrad && has_gradients_;
  }

  // Gradients and updates that the first run alone has, of parameters that both have.
  void look_for_more(const Moment& m, std::vector<Compared>& all) const {
    const Entry& e = *m.entry->npu;
    if (!m.gives || !may_lack(e)) return;
    const auto forward = of_npu_.find({e.path, Direction::Forward});
    // A part of what several modules have together has its partner there.
    if (forward == of_npu_.end() || of_npu_.contains({e.path, e.direction})) return;
    for (const Record& n : e.records)
      if (std::ranges::any_of(forward->second->records, [&](const RecordPair& r) {
            return r.npu && r.bench && r.npu->part == Part::Parameter && r.npu->own == n.own;
          }))
        add_missing(m, e, {&n, nullptr}, all);
  }

  // Gradients and updates of parameters that one run alone has.
  void look_for_missing(const Moment& m, std::vector<Compared>& all) {
    if (may_lack(*m.entry->npu))
      for (const RecordPair& r : m.entry->records)
        if (!r.npu || !r.bench) add_missing(m, r.npu ? *m.entry->npu : *m.entry->bench, r, all);
    if (!has_gradients_ || m.entry->npu->direction != Direction::Backward) return;
    const auto it = without_gradients_.find(key_of(m.entry->bench->path, m.entry->bench->call));
    if (it == without_gradients_.end()) return;
    for (const Record& b : it->second->records) add_missing(m, *it->second, {nullptr, &b}, all);
    without_gradients_.erase(it);
  }

  // What is there before anything is computed is as exact as it is stored.
  static double stored(const Moment& m, const RecordPair& r) {
    return r.npu->type == r.bench->type ? 0x1p-40 : 4 * unit_of(*m.entry);
  }

  // That of its figures which is the most times over what training may have done to it: few
  // elements may be far apart, and most of them not.
  // `least`: what is allowed without it.
  Difference of_parameter(const TakenParameter& of, const ElementFigures& e, double least) const {
    const Drift* const drift = circumstances_.drift;
    const Drift::Limits limits = drift ? drift->limits(*of.entry, *of.parameter) : Drift::Limits();
    const Difference all[] = {{e.relative_distance, least + limits.length, "the elements"},
                              {e.relative_worst, least + limits.element, "an element"},
                              {e.relative_typical, least + limits.typical, "a typical element"}};
    return *std::ranges::max_element(all, {},
                                     [](const Difference& d) { return d.size / d.allowed; });
  }

  double drift_of(const TakenParameter& p) const {
    return circumstances_.drift ? circumstances_.drift->of(*p.entry, *p.parameter) : 0;
  }
  double allowed(const Moment& m, const RecordPair& r, double inputs) const {
    if (r.npu->part == Part::Parameter) return stored(m, r) + drift_of({m.entry->npu, r.npu});
    if (r.npu->part == Part::Update)
      return allowed_update(r) +
             stored_update(r, other_direction(*m.entry->bench, Direction::Forward));
    return typical(inputs, m.gives ? small_inputs(*m.entry) : 0);
  }

  // Where a share of an update's elements are others, its length is by the square of that. A vector
  // may have elements whose gradient is nothing in exact numbers, such as a bias of keys: of such
  // a part of it nothing but rounding is seen.
  double allowed_update(const RecordPair& r) const {
    const bool is_vector = std::min(r.npu->shape.size(), r.bench->shape.size()) < 2;
    const double share = Drift().share(noise_.coarsest()) + noise_.drift();
    const double matrix = std::max(2 * noise_.most(), kTimesNoise * noise_.level()) + share * share;
    // Twice or half of what is right is seen in any case.
    return std::min(is_vector ? 10 * matrix + share : matrix, is_vector ? 0.48 : 0.3);
  }

  static const Record* first_input(const EntryPair* p) {
    if (p)
      for (const Record& record : p->bench->records)
        if (record.part == Part::Input && is_float(record)) return &record;
    return nullptr;
  }
  // The gradient of what a module gives, from which those of its parameters are.
  const Record* reaching(const EntryPair& entry) const {
    return first_input(other_direction(*entry.bench, Direction::Backward));
  }
  // Of a parameter's gradient, from the gradient that reaches its module and what the module takes.
  double natural_size(const EntryPair& entry, const RecordPair& r) const {
    if (is_vectors_update(*r.npu, *r.bench))
      return std::max(or_zero(r.npu->norm), or_zero(r.bench->norm));
    if (r.npu->part != Part::Gradient) return 0;
    const Record* const reaches = reaching(entry);
    if (!reaches) return 0;
    if (r.bench->shape.size() < 2) return or_zero(reaches->norm);
    const Record* const taken = first_input(other_direction(*entry.bench, Direction::Forward));
    if (!taken || reaches->shape.empty()) return 0;
    const double rows = reaches->elements() / std::max<double>(1, reaches->shape.back());
    return or_zero(reaches->norm) * or_zero(taken->norm) / std::sqrt(std::max(1.0, rows));
  }

  const ElementsOf& elements_of_;
  const Circumstances& circumstances_;
  std::map<std::string, const EntryPair*> paired_;  // by path, call and direction
  std::map<std::pair<std::string, Direction>, const EntryPair*> last_;  // of the calls of a path
  std::map<std::string, const Entry*> without_gradients_;  // what bench alone has, by path and call
  std::vector<const Entry*> without_updates_;              // what bench alone has
  std::map<std::pair<std::string, Direction>, const EntryPair*> of_npu_;  // by its own path
  bool has_gradients_ = false, has_updates_ = false;                      // both runs
  std::set<double> sizes_;  // of what both have in the forward pass
  TakenParameters taken_parameters_;
  const TiedParameters tied_;
  std::map<const EntryPair*, double> inputs_;  // what the inputs of calls are off
  std::map<const EntryPair*, double> small_;   // ... because of the few digits of small numbers
  Noise noise_;
  double seen_ = 0;  // the most so far that was explained
  SmallLoss small_loss_;
  bool is_backward_ = false;
  bool are_equal_ = true;  // all values so far, and their types
};

}  // namespace

std::optional<Difference> difference_of(const RecordPair& pair, const ElementFigures* elements,
                                        double natural) {
  const Record &n = *pair.npu, &b = *pair.bench;
  if (!n.is_tensor || !b.is_tensor) return std::nullopt;
  if (is_of_another_class(n, b)) return Difference{kInfinite, 0, "the type"};
  if (!n.has_shape || !b.has_shape) return std::nullopt;
  if (!pair.has_same_size()) return Difference{kInfinite, 0, "the shape"};
  if (elements) {
    Difference d{elements->relative_distance, 0, "the elements"};
    double worst = elements->relative_worst;
    if (natural > elements->length && std::isfinite(d.size)) {
      d.size = elements->difference / natural;
      const double largest = natural / std::sqrt(std::max(1.0, b.elements()));
      worst = elements->largest_difference / std::max(elements->largest, largest);
    }
    if (worst > d.size) d.size = worst, d.of = "an element";
    d.seen = elements->seen;
    return d;
  }
  const InRange in_range(n, b);
  if (auto d = of_figures(in_range.npu(), in_range.bench(), natural)) return d;
  if (n.hash.empty() || b.hash.empty()) return std::nullopt;
  return Difference{n.hash == b.hash ? 0 : kInfinite, 0, "the hash of the bytes"};
}

std::vector<Compared> compare_all(const Pairs& pairs, const ElementsOf& elements_of,
                                  const Circumstances& circumstances, double* noise,
                                  double* of_loss) {
  std::vector<Compared> all;
  Judge judge(pairs, elements_of, circumstances);
  for (const Moment& m : moments_of(pairs)) judge.look(m, all);
  judge.finish(all);
  if (noise) *noise = judge.noise();
  if (of_loss) *of_loss = judge.of_loss();
  return all;
}

std::size_t count_bare(const Pairs& pairs, const std::vector<Compared>& compared) {
  std::set<const Record*> known;
  for (const Compared& c : compared)
    if (c.records.npu) known.insert(c.records.npu);
  std::size_t count = 0;
  for (const EntryPair& p : pairs.entries)
    for (const RecordPair& r : p.records)
      count += r.npu && r.bench && r.npu->is_tensor && r.bench->is_tensor &&
               r.npu->elements() > 0 && !known.contains(r.npu);
  return count;
}

}  // namespace aloft::compare
