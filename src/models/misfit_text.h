// A Misfit in words.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "models/family.h"

namespace aloft::models {

// `from` says of a key where its value is from, where that is to be said: " of model.size gpt2-xl".
std::string text_of(const Misfit& misfit, const SettingValues& settings,
                    const std::function<std::string(std::string_view key)>& from = {});

}  // namespace aloft::models
