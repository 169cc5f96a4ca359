// conv2d and its gradients on groups of images.
#include "ops/conv2d.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu/conv/conv_cut_grid.h"
#include "backends/cpu/conv/conv_grid.h"
#include "backends/cpu/conv/conv_weight_grid.h"
#include "backends/cpu/conv/conv_weight_product.h"
#include "backends/cpu/conv/conv_weight_strips.h"
#include "backends/cpu/conv/wide_conv.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/vectors/tiles.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

std::optional<Refusal> accepts_double(const CallSpec& call) {
  for (const auto* list : {&call.in, &call.out})
    for (const TensorType& t : *list)
      if (t.dtype != DType::F64)
        return Refusal{std::string(name_of(t.dtype)) + " among f64 operands"};
  return std::nullopt;
}

bool has_empty_dimension(const CallSpec& call) {
  for (const auto* list : {&call.in, &call.out})
    for (const TensorType& t : *list)
      for (int d = 1; d < t.shape.rank(); ++d)
        if (t.shape[d].max() == 0) return true;
  return false;
}

std::optional<Refusal> accepts(const CallSpec& call) {
  for (const auto* list : {&call.in, &call.out})
    for (const TensorType& t : *list)
      if (!has_tiles(t.dtype))
        return Refusal{std::string(name_of(t.dtype)) + " is not computed in f32"};
  if (has_empty_dimension(call)) return Refusal{"an empty dimension"};
  return std::nullopt;
}

// Of a convolution with nothing to sum over the bias is left, or zeros.
std::optional<Refusal> accepts_empty(const CallSpec& call) {
  if (!has_empty_dimension(call)) return Refusal{"no dimension is empty"};
  return std::nullopt;
}

class EmptyConvolution : public Prepared {
 public:
  explicit EmptyConvolution(const CallSpec& call)
      : element_(size_of(call.out[0].dtype)), has_bias_(call.in.size() == 3) {
    const Shape& out = call.out[0].shape;
    outer_ = extent_of(out[0], call);
    channels_ = out[1].max();
    pixels_ = out[2].max() * out[3].max();
  }
  void run(const RunArgs& args) const override {
    const std::size_t plane = static_cast<std::size_t>(pixels_) * element_;
    auto* to = static_cast<char*>(args.out[0]);
    const auto* bias = has_bias_ ? static_cast<const char*>(args.in[2]) : nullptr;
    for (std::int64_t i = 0, n = outer_.at(args.symbols); i < n * channels_; ++i, to += plane) {
      if (!bias) std::memset(to, 0, plane);
      for (std::size_t at = 0; bias && at < plane; at += element_)
        std::memcpy(to + at, bias + static_cast<std::size_t>(i % channels_) * element_, element_);
    }
  }

 private:
  std::size_t element_;
  bool has_bias_;
  Extent outer_;
  std::int64_t channels_ = 0, pixels_ = 0;
};

template <class A>
ConvSpec read(const CallSpec& call, ConvKind kind, const Shape& x, const Shape& w, const Shape& y) {
  const auto a = from_attrs<A>(call.attrs);
  ConvSpec s;
  s.kind = kind;
  s.images = x[0].max(), s.in = x[1].max(), s.out = w[0].max(), s.groups = a.groups;
  s.height = x[2].max(), s.width = x[3].max();
  s.kernel_height = w[2].max(), s.kernel_width = w[3].max();
  s.out_height = y[2].max(), s.out_width = y[3].max();
  for (int d = 0; d < 2; ++d) {
    s.padding[d] = a.padding[d];
    // The library adds them up in 32 bits. A window that moves over the whole image moves nowhere,
    // and one of a single element has no distances.
    s.stride[d] =
        std::min(a.stride[d], std::max<std::int64_t>(1, x[2 + d].max() + 2 * a.padding[d]));
    s.dilation[d] = w[2 + d].max() > 1 ? a.dilation[d] : 1;
  }
  s.type = call.in[0].dtype;
  s.bias = call.in.size() == 3;
  s.threads = call.threads;
  return s;
}

class Convolution : public Prepared {
 public:
  Convolution(std::unique_ptr<ConvWay> way, Extent images, const char* how)
      : way_(std::move(way)), images_(images), how_(how) {}
  std::size_t scratch_bytes() const override { return way_->scratch_bytes(); }
  std::string how() const override { return how_; }
  bool is_cut_by_bound() const override { return way_->is_cut_by_bound(); }
  void run(const RunArgs& args) const override {
    way_->run({args.in[0], args.in[1], args.in.size() > 2 ? args.in[2] : nullptr, args.out[0],
               args.scratch},
              images_.at(args.symbols));
  }

 private:
  std::unique_ptr<ConvWay> way_;
  Extent images_;
  const char* how_;
};

std::unique_ptr<Prepared> prepare_convolution(const ConvSpec& spec, Extent images) {
  const auto by = [&](std::unique_ptr<ConvWay> way, const char* how) {
    return std::make_unique<Convolution>(std::move(way), images, how);
  };
  if (spec.type == DType::F64) return by(std::make_unique<WideConv>(spec), "plain loops in double");
  if (spec.kind == ConvKind::GradWeight) {
    if (ConvWeightStrips::suits(spec))
      return by(std::make_unique<ConvWeightStrips>(spec),
                "our own strips, images unfolded a panel at a time");
    if (ConvWeightProduct::suits(spec))
      return by(std::make_unique<ConvWeightProduct>(spec),
                "one product on the matrix units: wide enough in bf16");
    return by(conv_weight_grid(spec), "the library, cut along its channels");
  }
  if (suits_cut_grid(spec))
    return by(conv_cut_grid(spec),
              "the library, cut along the channels made: more weight than images");
  return by(conv_grid(spec), "the library, a group of images at a time");
}

std::unique_ptr<Prepared> prepare_forward(const CallSpec& call) {
  const Shape &x = call.in[0].shape, &w = call.in[1].shape, &y = call.out[0].shape;
  return prepare_convolution(read<Conv2dAttrs>(call, ConvKind::Forward, x, w, y),
                             extent_of(x[0], call));
}

std::unique_ptr<Prepared> prepare_grad_input(const CallSpec& call) {
  const Shape &y = call.in[0].shape, &w = call.in[1].shape, &x = call.out[0].shape;
  return prepare_convolution(read<Conv2dGradAttrs>(call, ConvKind::GradInput, x, w, y),
                             extent_of(x[0], call));
}

std::unique_ptr<Prepared> prepare_grad_weight(const CallSpec& call) {
  const Shape &x = call.in[0].shape, &y = call.in[1].shape, &w = call.out[0].shape;
  return prepare_convolution(read<Conv2dGradAttrs>(call, ConvKind::GradWeight, x, w, y),
                             extent_of(x[0], call));
}

}  // namespace

std::vector<Kernel> conv2d_kernels() {
  std::vector<Kernel> kernels;
  const auto add = [&](std::string_view name, std::string_view empty, std::string_view in_double,
                       const char* op, auto prepare) {
    kernels.push_back({.name = name, .op = op, .accepts = accepts, .prepare = prepare});
    kernels.push_back({.name = empty,
                       .op = op,
                       .accepts = accepts_empty,
                       .prepare = prepare_as<EmptyConvolution>});
    kernels.push_back({.name = in_double, .op = op, .accepts = accepts_double, .prepare = prepare});
  };
  add("cpu.conv2d", "cpu.conv2d.empty", "cpu.conv2d.f64", "conv2d", prepare_forward);
  add("cpu.conv2d_grad_input", "cpu.conv2d_grad_input.empty", "cpu.conv2d_grad_input.f64",
      "conv2d_grad_input", prepare_grad_input);
  add("cpu.conv2d_grad_weight", "cpu.conv2d_grad_weight.empty", "cpu.conv2d_grad_weight.f64",
      "conv2d_grad_weight", prepare_grad_weight);
  return kernels;
}

}  // namespace aloft::cpu
