// The built-in methods. Options and their mathematics: src/graph/operators/update.h.
#pragma once

#include "optim/method.h"

namespace headway::optim {

// "adamw": beta1, beta2, eps.
std::unique_ptr<Method> make_adamw(TomlTable& group);
// "muon", for matrices: Nesterov momentum, Polar Express, optionally NorMuon, cautious decay. Keys:
// iterations, normuon, beta2.
std::unique_ptr<Method> make_muon(TomlTable& group);

}  // namespace headway::optim
