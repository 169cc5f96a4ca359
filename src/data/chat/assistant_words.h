// Which bytes of a conversation are the assistant's words: what a model is to learn of it.
#pragma once

#include "data/chat/chat_template.h"

namespace aloft {

// The rendered conversation (without a prompt at its end), and in `generated` the assistant's
// words, in order: what the template marks by {% generation %}; of one that marks nothing, what
// each of the assistant's messages adds to the conversation before it, rendered with the prompt
// for an answer: the end of the turn included. DataError E0543 where that cannot be told: a
// template that writes earlier messages otherwise once others follow. Errors of
// ChatTemplate::render.
RenderedChat render_with_words(const ChatTemplate& form, const ChatInput& input,
                               const RenderLimits& limits = {});

}  // namespace aloft
