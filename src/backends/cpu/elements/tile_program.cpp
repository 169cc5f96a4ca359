#include "backends/cpu/elements/tile_program.h"

#include <algorithm>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/elements/random_words.h"

namespace aloft::cpu {
namespace {

// numpy broadcasting; nullopt where the shapes do not fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  std::vector<Dim> dims;
  for (int i = std::max(a.rank(), b.rank()); i > 0; --i) {
    const Dim x = i > a.rank() ? Dim(1) : a[-i], y = i > b.rank() ? Dim(1) : b[-i];
    if (!(x == y) && !(x == Dim(1)) && !(y == Dim(1))) return std::nullopt;
    dims.push_back(x == Dim(1) ? y : x);
  }
  return Shape(std::move(dims));
}

const TensorType kRandomState{DType::I64, {3}};

// For the operands: random states are not read by elements.
CallSpec first_output(const CallSpec& call, const Shape& shape) {
  CallSpec c{call.op, {}, call.in, {{DType::F32, shape}}, call.threads};
  for (TensorType& t : c.in)
    if (t == kRandomState) t = {DType::F32, {}};
  return c;
}

}  // namespace

TileProgram::TileProgram(const CallSpec& call, Shape shape)
    : shape_(std::move(shape)),
      operands_(first_output(call, shape_)),
      inputs_(static_cast<int>(call.in.size())),
      in_(call.in),
      out_(call.out) {}

std::variant<TileProgram, Refusal> TileProgram::make(const CallSpec& call,
                                                     const StepProgram& program) {
  if (call.in.empty() || call.in.size() > kMaxOperands)
    return Refusal{"it has " + std::to_string(call.in.size()) + " operands, not 1 to " +
                   std::to_string(kMaxOperands)};
  std::optional<Shape> shape = Shape{};
  for (const TensorType& t : call.in) {
    if (t.dtype == DType::I64 && t != kRandomState)
      return Refusal{"a double does not hold every i64"};
    if (shape && t != kRandomState) shape = broadcast(*shape, t.shape);
  }
  if (!shape) return Refusal{"its operands do not broadcast to one shape"};
  if (program.out.size() != call.out.size()) return Refusal{"the program has other outputs"};
  TileProgram made(call, *shape);
  for (const TensorType& t : call.in) made.dtypes_.push_back(t.dtype);
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    const bool sums = program.steps[s].op == Name("sum");
    if (auto refusal = sums ? made.add_sum(call, program, s) : made.add_step(call, program, s))
      return *refusal;
  }
  if (made.steps_.empty()) return Refusal{"it has no element-wise step"};
  if (auto refusal = made.bind_outputs(call, program)) return *refusal;
  made.find_slots(program);
  made.find_low_steps();
  for (const Step& s : made.steps_)
    if (s.slot >= kSlots) return Refusal{"too many results are alive at once"};
  return made;
}

std::optional<Refusal> TileProgram::bind_outputs(const CallSpec& call, const StepProgram& program) {
  const auto own = static_cast<int>(steps_.size());
  for (std::size_t i = 0; i < program.out.size(); ++i) {
    const int s = program.out[i] - program.inputs;
    if (s >= own) {
      Sum& sum = sums_[s - own];
      sum.output = static_cast<int>(i);
      out_steps_.push_back(-1);
      continue;
    }
    steps_[s].output = static_cast<int>(i);
    out_steps_.push_back(s);
    if (call.out[i] != TensorType{steps_[s].dtype, shape_})
      return Refusal{"output " + std::to_string(i) + " has another type than its step"};
  }
  for (const Sum& sum : sums_)
    if (sum.output < 0) return Refusal{"a sum that is no output"};
  return std::nullopt;
}

// Sums come last, and nobody but the call's reader takes them.
std::optional<Refusal> TileProgram::add_sum(const CallSpec& call, const StepProgram& program,
                                            int step) {
  const ProgramStep& s = program.steps[step];
  const auto out = std::find(program.out.begin(), program.out.end(), program.inputs + step);
  if (s.in.size() != 1 || s.in[0] < inputs_ || out == program.out.end())
    return Refusal{"a sum that is not an output, or not of a step's result"};
  if (s.in[0] >= inputs_ + static_cast<int>(steps_.size())) return Refusal{"a sum of a sum"};
  const TensorType& type = call.out[out - program.out.begin()];
  const CallSpec part{s.op, s.attrs, {{dtypes_[s.in[0]], shape_}}, {type}, call.threads};
  const Choice choice = choose_kernel(cpu_backend(), part);
  const auto prepared = choice.kernel != nullptr ? choice.kernel->prepare(part) : nullptr;
  const CpuLoopPart* loop_part = loop_part_of(prepared.get());
  const auto* reduction = loop_part != nullptr ? loop_part->column_reduction() : nullptr;
  const auto fold = reduction != nullptr ? reduction->column_fold() : std::nullopt;
  if (!fold || type.dtype != s.dtype || !type.shape.is_constant() ||
      type.shape.max_numel() != fold->columns)
    return Refusal{"only sums over leading axes, in f32, join a loop"};
  // Beyond this a loop along columns would leave the order in which memory lies.
  if (fold->columns > 16384) return Refusal{"the sum has too many columns"};
  if (fold_ && (fold_->columns != fold->columns || fold_->most_pieces != fold->most_pieces))
    return Refusal{"two sums over different axes"};
  if (sums_.size() == 4) return Refusal{"more than four sums"};
  fold_ = fold;
  sums_.push_back({s.in[0], -1, s.dtype});
  dtypes_.push_back(s.dtype);
  cost_ += 1;
  return std::nullopt;
}

std::optional<Refusal> TileProgram::add_step(const CallSpec& call, const StepProgram& program,
                                             int step) {
  const ProgramStep& s = program.steps[step];
  if (!sums_.empty()) return Refusal{"a step behind a sum"};
  if (s.dtype == DType::I64) return Refusal{"a double does not hold every i64"};
  if (s.in.empty() || s.in.size() > 4)
    return Refusal{"step '" + s.op.str() + "' has " + std::to_string(s.in.size()) + " operands"};
  CallSpec part{s.op, s.attrs, {}, {{s.dtype, shape_}}, call.threads};
  for (int v : s.in) part.in.push_back({dtypes_[v], v < inputs_ ? call.in[v].shape : shape_});
  const Choice choice = choose_kernel(cpu_backend(), part);
  const auto prepared =
      choice.kernel != nullptr && !choice.kernel->is_view ? choice.kernel->prepare(part) : nullptr;
  const CpuLoopPart* loop_part = loop_part_of(prepared.get());
  const auto* tile_op = loop_part != nullptr ? loop_part->tile_op() : nullptr;
  if (tile_op == nullptr) return Refusal{"'" + s.op.str() + "' has no kernel that works on tiles"};
  Step made;
  made.code = tile_op->tile_code();
  made.in = s.in;
  if (made.code.draws()) {
    // The second operand is looked at as a whole.
    if (s.in.size() != 2 || part.in[1] != kRandomState)
      return Refusal{"step '" + s.op.str() + "' draws without a random state"};
    made.random_state = made.in[1];
    made.in.pop_back();
    part.in.pop_back();
  }
  std::optional<Shape> shape = Shape{};
  made.in_f32 = fits_f32(s.dtype);
  for (const TensorType& t : part.in) {
    if (t.dtype == DType::I64) return Refusal{"a double does not hold every i64"};
    if (is_integer(t.dtype) && is_integer(s.dtype))
      return Refusal{"step '" + s.op.str() + "' computes integers, which wrap around"};
    if (shape) shape = broadcast(*shape, t.shape);
    made.in_f32 = made.in_f32 && fits_f32(t.dtype);
  }
  if (!shape || *shape != shape_) return Refusal{"step '" + s.op.str() + "' has another shape"};
  made.dtype = s.dtype;
  cost_ += made.code.cost;
  dtypes_.push_back(s.dtype);
  steps_.push_back(std::move(made));
  return std::nullopt;
}

// A step's tile takes the place of one that nobody reads any more.
void TileProgram::find_slots(const StepProgram& program) {
  last_read_.assign(static_cast<std::size_t>(program.values()), -1);
  for (std::size_t s = 0; s < steps_.size(); ++s)
    for (int v : steps_[s].in) last_read_[v] = static_cast<int>(s);
  for (const Sum& sum : sums_) last_read_[sum.value] = static_cast<int>(steps_.size());
  std::vector<int> free_at;  // of each slot: the last step that reads what it holds
  for (int s = 0; s < static_cast<int>(steps_.size()); ++s) {
    const int last = last_read_[inputs_ + s];
    steps_[s].is_read = last >= 0;
    const auto found =
        std::find_if(free_at.begin(), free_at.end(), [s](int until) { return until <= s; });
    steps_[s].slot = static_cast<int>(found - free_at.begin());
    if (found == free_at.end())
      free_at.push_back(std::max(last, s));
    else
      *found = std::max(last, s);
  }
}

void TileProgram::find_low_steps() {
  is_opened_.assign(static_cast<std::size_t>(inputs_), false);
  is_read_in_low_ = is_opened_;
  for (Step& s : steps_) {
    s.in_low = s.code.low.has_low(s.dtype);
    for (int v : s.in)
      s.in_low = s.in_low && v < inputs_ && dtypes_[v] == s.dtype && operands_.is_dense(v);
    std::vector<bool>& read = s.in_low ? is_read_in_low_ : is_opened_;
    for (int v : s.in)
      if (v < inputs_) read[v] = true;
  }
}

bool TileProgram::is_in_f32() const {
  return std::all_of(steps_.begin(), steps_.end(), [](const Step& s) { return s.in_f32; });
}

bool TileProgram::may_share(int in, int out) const {
  if (in_[in] != out_[out] || !is_dense(out)) return false;
  // A tile of another type is a copy, made before anything is written.
  const bool is_memory_itself =
      in_[in].dtype == DType::F32 || in_[in].dtype == DType::F64 || is_read_in_low_[in];
  return !is_memory_itself || last_read_[in] <= out_steps_[out];
}

// A tile begins anywhere, a block of random words at every fourth element.
template <class T>
void TileProgram::draw(const Step& step, Tiles& tiles, std::int64_t begin, std::int64_t n,
                       const T* x, T* result) const {
  const scalar::RandomKey key = random_key(tiles.args_.in[step.random_state], step.code.key);
  const std::int64_t first = begin / 4 * 4;
  random_words(key, static_cast<std::uint64_t>(first), begin - first + n, tiles.words_);
  const std::uint32_t* words = tiles.words_ + (begin - first);
  if constexpr (std::is_same_v<T, float>)
    step.code.drawn_f32(x, words, result, n, step.code.numbers.data());
  else
    step.code.drawn_f64(x, words, result, n, step.code.numbers.data());
}

template <class T>
void TileProgram::run_step(const Step& step, Tiles& tiles, int value, std::int64_t begin,
                           std::int64_t n, void* place) const {
  constexpr bool kInF32 = std::is_same_v<T, float>;
  const T* in[4];
  for (std::size_t i = 0; i < step.in.size(); ++i) {
    const int v = step.in[i];
    const void* tile = tiles.at_[v];
    if constexpr (kInF32)
      in[i] = static_cast<const float*>(tile);
    else
      in[i] = fits_f32(dtypes_[v]) ? open_f64(DType::F32, tile, tiles.widened_[i], n)
                                   : static_cast<const double*>(tile);
  }
  T* slot = reinterpret_cast<T*>(tiles.slots_[step.slot]);
  T* result = place != nullptr && step.dtype == (kInF32 ? DType::F32 : DType::F64)
                  ? static_cast<T*>(place)
                  : slot;
  if (step.code.draws())
    draw(step, tiles, begin, n, in[0], result);
  else if constexpr (kInF32)
    step.code.f32(in, result, n, step.code.numbers.data());
  else
    step.code.f64(in, result, n, step.code.numbers.data());
  tiles.at_[value] = result;
  if (step.dtype == (kInF32 ? DType::F32 : DType::F64)) return;
  // Through the result's own type, as if it had been written and read.
  if (kInF32 && is_low(step.dtype) && place == nullptr) {
    round_tile(step.dtype, reinterpret_cast<float*>(result), n);
    return;
  }
  void* raw = place != nullptr ? place : tiles.raw_;
  if constexpr (kInF32)
    close_f32(step.dtype, result, raw, n);
  else
    close_f64(step.dtype, result, raw, n);
  if (!step.is_read) return;
  auto* floats = reinterpret_cast<float*>(tiles.slots_[step.slot]);
  if (step.dtype == DType::F32 && place == nullptr) {
    // What lies in raw_ is gone with the next step.
    std::copy_n(static_cast<const float*>(raw), n, floats);
    tiles.at_[value] = floats;
  } else if (fits_f32(step.dtype)) {
    tiles.at_[value] = open_f32(step.dtype, raw, floats, n);
  } else {
    tiles.at_[value] = open_f64(step.dtype, raw, tiles.slots_[step.slot], n);
  }
}

// One loop where run_step takes three, to the same bits.
template <class T>
void TileProgram::run_low(const Step& step, TileOf<T> tile, Tiles& tiles, int value,
                          std::int64_t begin, std::int64_t n, void* place) const {
  const T* in[4];
  for (std::size_t i = 0; i < step.in.size(); ++i)
    in[i] = static_cast<const T*>(tiles.reader_.raw(step.in[i], begin, n));
  T* result = place != nullptr ? static_cast<T*>(place) : reinterpret_cast<T*>(tiles.raw_);
  tile(in, result, n, step.code.numbers.data());
  if (step.is_read)
    tiles.at_[value] =
        open_f32(step.dtype, result, reinterpret_cast<float*>(tiles.slots_[step.slot]), n);
}

const float* TileProgram::tile_of(const Tiles& tiles, int value) {
  return static_cast<const float*>(tiles.at_[value]);
}

void TileProgram::run(Tiles& tiles, std::int64_t begin, std::int64_t n, void* const* out) const {
  for (int i = 0; i < inputs_; ++i) {
    if (!is_opened_[i]) continue;
    tiles.at_[i] = fits_f32(dtypes_[i])
                       ? static_cast<const void*>(tiles.reader_.as_f32(i, begin, n))
                       : tiles.reader_.as_f64(i, begin, n);
  }
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const int value = inputs_ + static_cast<int>(s);
    void* place = step.output < 0 ? nullptr : out[step.output];
    if (step.in_low && step.dtype == DType::BF16)
      run_low(step, step.code.low.bf16, tiles, value, begin, n, place);
    else if (step.in_low)
      run_low(step, step.code.low.f16, tiles, value, begin, n, place);
    else if (step.in_f32)
      run_step<float>(step, tiles, value, begin, n, place);
    else
      run_step<double>(step, tiles, value, begin, n, place);
  }
}

}  // namespace aloft::cpu
