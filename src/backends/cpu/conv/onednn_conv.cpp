// oneDNN's convolutions and reorders, for 2.6 and 3.x.
#include "backends/cpu/onednn.h"

namespace aloft::cpu {
namespace {

using dnnl::memory;
using Kind = OneDnnConvShape::Kind;

dnnl::primitive_attr user_scratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

memory::dims pair(const std::array<std::int64_t, 2>& v) { return {v[0], v[1]}; }

dnnl::convolution_forward::primitive_desc describe_forward(const OneDnnConvShape& s,
                                                           const OneDnnConv::Layouts& l,
                                                           const memory::desc& bias) {
  using P = dnnl::convolution_forward;
  const auto kind = dnnl::prop_kind::forward_training;
  const auto how = dnnl::algorithm::convolution_direct;
  const memory::dims stride = pair(s.stride), pad = pair(s.padding);
  const memory::dims dilation = {s.dilation[0] - 1, s.dilation[1] - 1};
#if DNNL_VERSION_MAJOR >= 3
  return s.bias ? P::primitive_desc(onednn_engine(), kind, how, l.x, l.weight, bias, l.y, stride,
                                    dilation, pad, pad, user_scratch())
                : P::primitive_desc(onednn_engine(), kind, how, l.x, l.weight, l.y, stride,
                                    dilation, pad, pad, user_scratch());
#else
  const auto desc = s.bias
                        ? P::desc(kind, how, l.x, l.weight, bias, l.y, stride, dilation, pad, pad)
                        : P::desc(kind, how, l.x, l.weight, l.y, stride, dilation, pad, pad);
  return {desc, user_scratch(), onednn_engine()};
#endif
}

// Backward: P is convolution_backward_data or convolution_backward_weights.
template <class P>
typename P::primitive_desc describe_grad(const OneDnnConvShape& s, const OneDnnConv::Layouts& l,
                                         const dnnl::convolution_forward::primitive_desc& hint) {
  const auto how = dnnl::algorithm::convolution_direct;
  const memory::dims stride = pair(s.stride), pad = pair(s.padding);
  const memory::dims dilation = {s.dilation[0] - 1, s.dilation[1] - 1};
#if DNNL_VERSION_MAJOR >= 3
  return {onednn_engine(), how, l.x, l.weight, l.y,           stride,
          dilation,        pad, pad, hint,     user_scratch()};
#else
  return {typename P::desc(how, l.x, l.weight, l.y, stride, dilation, pad, pad), user_scratch(),
          onednn_engine(), hint};
#endif
}

}  // namespace

OneDnnConv::OneDnnConv(const OneDnnConvShape& s, int threads, const OneDnnConv* like)
    : kind_(s.kind), has_bias_(s.bias) {
  const OneThread one;
  const auto type = onednn_type(s.type);
  const auto weight_type = s.kind == Kind::GradWeight ? memory::data_type::f32 : type;
  const memory::dims x = {s.images, s.in, s.height, s.width};
  const memory::dims y = {s.images, s.out, s.out_height, s.out_width};
  memory::dims w = {s.out / s.groups, s.in / s.groups, s.kernel_height, s.kernel_width};
  if (s.groups > 1) w.insert(w.begin(), s.groups);
  if (s.groups == 1) w[0] = s.out;
  const auto plain_w = s.groups > 1 ? memory::format_tag::goihw : memory::format_tag::oihw;
  const auto any = memory::format_tag::any, nchw = memory::format_tag::nchw;
  try {
    weight_dims_ = w;
    plain_ = {{x, type, nchw}, {w, weight_type, plain_w}, {y, type, nchw}};
    bias_desc_ = {{s.out}, memory::data_type::f32, memory::format_tag::a};
    Layouts wanted = {{x, type, any}, {w, weight_type, any}, {y, type, any}};
    if (like) wanted.weight = like->packed_.weight;
    const dnnl::primitive primitive = make(s, wanted);
    calls_ = OneDnnCalls(primitive, arguments(s), threads);
  } catch (const dnnl::error& e) {
    throw_onednn("a convolution", e);
  }
}

void OneDnnConv::run_images(const void* read, const void* weight, const void* made,
                            const void* scratch, const void* bias) const {
  if (is_grad_input())
    run({made, weight, read, scratch});
  else if (has_bias_)
    run({read, weight, made, scratch, bias});
  else
    run({read, weight, made, scratch});
}

dnnl::primitive OneDnnConv::make(const OneDnnConvShape& s, const Layouts& wanted) {
  if (s.kind == Kind::Forward) {
    const auto pd = describe_forward(s, wanted, bias_desc_);
    packed_ = {pd.src_desc(), pd.weights_desc(), pd.dst_desc()};
    scratch_ = pd.scratchpad_desc();
    return dnnl::convolution_forward(pd);
  }
  OneDnnConvShape forward = s;
  forward.bias = false;
  Layouts hinted = wanted;
  hinted.weight = {weight_dims_, onednn_type(s.type), memory::format_tag::any};
  const auto hint = describe_forward(forward, hinted, bias_desc_);
  if (s.kind == Kind::GradInput) {
    const auto pd = describe_grad<dnnl::convolution_backward_data>(s, wanted, hint);
    packed_ = {pd.diff_src_desc(), pd.weights_desc(), pd.diff_dst_desc()};
    scratch_ = pd.scratchpad_desc();
    return dnnl::convolution_backward_data(pd);
  }
  const auto pd = describe_grad<dnnl::convolution_backward_weights>(s, wanted, hint);
  packed_ = {pd.src_desc(), pd.diff_weights_desc(), pd.diff_dst_desc()};
  scratch_ = pd.scratchpad_desc();
  return dnnl::convolution_backward_weights(pd);
}

std::vector<std::pair<int, memory::desc>> OneDnnConv::arguments(const OneDnnConvShape& s) const {
  const bool forward = s.kind == Kind::Forward;
  const int x = s.kind == Kind::GradInput ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC;
  const int w = s.kind == Kind::GradWeight ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
  const int y = forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST;
  std::vector<std::pair<int, memory::desc>> args = {
      {x, packed_.x}, {w, packed_.weight}, {y, packed_.y}, {DNNL_ARG_SCRATCHPAD, scratch_}};
  if (s.bias) args.push_back({DNNL_ARG_BIAS, bias_desc_});
  return args;
}

OneDnnReorder::OneDnnReorder(const memory::desc& from, const memory::desc& to, int threads) {
  const OneThread one;
  try {
    const dnnl::reorder::primitive_desc pd(onednn_engine(), from, onednn_engine(), to,
                                           user_scratch());
    const memory::desc scratch = pd.scratchpad_desc();
    scratch_bytes_ = scratch.get_size();
    calls_ = OneDnnCalls(dnnl::reorder(pd),
                         {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, scratch}},
                         threads);
  } catch (const dnnl::error& e) {
    throw_onednn("a change of layout", e);
  }
}

}  // namespace aloft::cpu
