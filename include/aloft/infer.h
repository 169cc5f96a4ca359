// Text from a language model: a model from disk (open_saved_model), or one of the program's own; a
// Generator of it, texts that are drawn (draw_texts). Not part of <aloft/aloft.h>, which compiles
// faster without.
#pragma once

#include "infer/draw_texts.h"
#include "infer/generate.h"
#include "infer/saved_model.h"
