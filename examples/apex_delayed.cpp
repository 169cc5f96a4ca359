// apex's scale_loss with all that it takes: gradients of several micro-batches that are divided by
// the scale once, a second loss with a scale of its own, clipping by the masters' gradients, and a
// state that another run goes on from.
//
//   with amp.scale_loss(loss, optimizer, delay_unscale=not last) as scaled_loss:
//       scaled_loss.backward()
//   torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
//   optimizer.step()
#include <aloft/aloft.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

constexpr int kMicroBatches = 4;

int main() {
  manual_seed(1);
  Loader loader(noisy_prototypes(2048), {.batch = 16});
  models::Mlp network({784, 64, 10}, relu);
  auto [model, optimizer] = amp::initialize(network, optim::Adam{.lr = 2e-3},
                                            {.opt_level = "O2", .num_losses = 2, .verbosity = 0});
  double first = 0, last = 0;
  int batches = 0, skipped = 0;
  for (auto [x, label] : loader) {
    const bool ends_step = ++batches % kMicroBatches == 0;
    const Tensor outputs = model(x);
    const Tensor loss = cross_entropy(outputs, label);
    {
      // The gradients stay multiplied until the last of the micro-batches, whose block divides all.
      auto scaled_loss = amp::scale_loss(loss / static_cast<double>(kMicroBatches), optimizer,
                                         {.model = &network, .delay_unscale = !ends_step});
      scaled_loss.backward();
    }
    last = loss.item();
    if (batches == 1) first = last;
    if (!ends_step) continue;

    // A second loss, of small logits, has a scale of its own. Every other time its scale is left
    // where it is, and learns of an overflow behind the next block; the step is skipped for it
    // still.
    const bool is_even = batches / kMicroBatches % 2 == 0;
    {
      auto scaled_loss = amp::scale_loss(1e-4 * mean(square(model(x))), optimizer,
                                         {.loss_id = 1, .delay_overflow_check = is_even});
      scaled_loss.backward();
    }
    clip_grad_norm_(amp::master_params(optimizer), 1.0);
    skipped += amp::step(optimizer).skipped();
    optimizer.zero_grad();
  }
  fmt::print("first loss {:.3f}, last {:.3f}, {} steps skipped\n", first, last, skipped);

  // torch.save({"amp": amp.state_dict()}) of a program that writes files of its own: the text is
  // what json.dumps writes of it in Python.
  const std::string saved = amp::state_dict(optimizer).str();
  fmt::print("{}\n", saved);
  models::Mlp again({784, 64, 10}, relu);
  auto [other, fresh] = amp::initialize(again, optim::Adam{.lr = 2e-3},
                                        {.opt_level = "O2", .num_losses = 2, .verbosity = 0});
  amp::load_state_dict(fresh, amp::AmpState::parse(saved));
  const bool same = amp::state_dict(fresh) == amp::state_dict(optimizer);
  return last < 0.5 * first && skipped == 0 && same ? 0 : 1;
}
