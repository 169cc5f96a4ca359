#include "mindspore/counterparts.h"

namespace aloft::amp {
namespace {

// Layers of one dimension more or fewer, recurrent cells and transposed convolutions of one and
// three dimensions there are none of here.
constexpr Counterpart kWhite[] = {
    {"nn.Conv1d", "conv1d"},
    {"nn.Conv2d", "conv2d"},
    {"nn.Conv3d", ""},
    {"nn.Conv1dTranspose", ""},
    {"nn.Conv2dTranspose", "conv_transpose2d"},
    {"nn.Conv3dTranspose", ""},
    {"nn.Dense", "linear"},
    {"nn.LSTMCell", ""},
    {"nn.RNNCell", ""},
    {"nn.GRUCell", ""},
    {"P.Conv2D", "conv2d"},
    {"P.Conv3D", ""},
    {"P.Conv2DTranspose", "conv_transpose2d"},
    {"P.Conv3DTranspose", ""},
    {"P.Conv2DBackpropInput", "conv2d_grad_input"},
    {"P.MatMul", "matmul"},
    {"P.BatchMatMul", "matmul"},
    {"P.PReLU", ""},
    {"P.ReLU", "relu"},
    {"P.Ger", ""},
};

constexpr Counterpart kAutoWhite[] = {
    {"P.Conv2D", "conv2d"},
    {"P.Conv3D", ""},
    {"gen.Conv2DExt", "conv2d"},
    {"gen.Conv3DExt", ""},
    {"gen.ConvTranspose2D", "conv_transpose2d"},
    {"P.Conv2DTranspose", "conv_transpose2d"},
    {"P.Conv3DTranspose", ""},
    {"gen.Convolution", "conv1d,conv2d,conv_transpose2d"},
    {"P.MatMul", "matmul"},
    {"gen.MatMulExt", "matmul"},
    {"P.BatchMatMul", "matmul"},
    {"gen.BatchMatMulExt", "matmul"},
    {"gen.PReLU", ""},
    {"P.Einsum", ""},
    {"gen.Dense", "linear"},
    {"gen.Addmm", "linear"},
    {"gen.Addbmm", ""},
    {"gen.Addmv", "linear"},
    {"gen.Baddbmm", ""},
    {"gen.Mv", "matmul"},
};

constexpr Counterpart kAutoBlack[] = {
    {"gen.Pow", "pow"},
    {"gen.ACos", "acos"},
    {"gen.Asin", "asin"},
    {"gen.Cosh", "cosh"},
    {"P.Erfinv", ""},
    {"P.Exp", "exp"},
    {"P.Expm1", "expm1"},
    {"gen.Log", "log"},
    {"gen.Log10", ""},
    {"gen.Log1p", "log1p"},
    {"gen.Log2", ""},
    {"P.Reciprocal", "reciprocal"},
    {"P.Rsqrt", "rsqrt"},
    {"P.Sinh", "sinh"},
    {"P.Tan", "tan"},
    {"P.Softplus", "softplus"},
    {"gen.SoftplusExt", "softplus"},
    {"P.LayerNorm", "layer_norm"},
    {"gen.LayerNormExt", "layer_norm"},
    {"P.BatchNorm", "batch_norm"},
    {"gen.BatchNormExt", "batch_norm"},
    {"gen.GroupNorm", "group_norm"},
    {"gen.Norm", "norm"},
    {"P.KLDivLoss", "kl_div"},
    {"P.SmoothL1Loss", "huber_loss"},
    {"P.MultilabelMarginLoss", ""},
    {"P.SoftMarginLoss", ""},
    {"P.TripletMarginLoss", ""},
    {"P.MultiMarginLoss", ""},
    {"P.BCEWithLogitsLoss", "bce_with_logits"},
    {"P.Pdist", ""},
    {"P.Cdist", ""},
    {"P.Renorm", ""},
    {"gen.ReduceProd", "prod"},
    {"gen.Softmax", "softmax"},
    {"gen.LogSoftmax", "log_softmax"},
    {"gen.LogSoftmaxExt", "log_softmax"},
    {"gen.CumProd", ""},
    {"gen.CumSum", "cumsum"},
    {"gen.CumsumExt", "cumsum"},
    {"gen.ProdExt", "prod"},
    {"gen.SumExt", "sum"},
    {"gen.L1LossExt", "l1_loss"},
    {"gen.MSELossExt", "mse_loss"},
    {"gen.NLLLoss", "nll_loss"},
    {"gen.NLLLoss2d", ""},
};

}  // namespace

std::span<const Counterpart> white_counterparts() { return kWhite; }
std::span<const Counterpart> auto_white_counterparts() { return kAutoWhite; }
std::span<const Counterpart> auto_black_counterparts() { return kAutoBlack; }

}  // namespace aloft::amp
