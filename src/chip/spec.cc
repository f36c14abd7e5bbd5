#include "chip/spec.h"

namespace headway::chip {

Spec Spec::load(const std::string& name_or_path) {
  Spec spec;
  if (name_or_path.find("trn1") != std::string::npos) {
    spec.name = "trn1";
    spec.generation = 2;
    spec.core_name = "NeuronCore-v2";
    spec.sbuf_usable_bytes = 180224;
  } else if (name_or_path.find("trn3") != std::string::npos) {
    spec.name = "trn3";
    spec.generation = 4;
    spec.core_name = "NeuronCore-v4";
    spec.sbuf_usable_bytes = 245752;
  }
  return spec;
}

}  // namespace headway::chip
