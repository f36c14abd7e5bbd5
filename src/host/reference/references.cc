#include "host/reference/references.h"

namespace headway::host {

void register_references() {
  register_linear_references();
  register_elementwise_references();
  register_sequence_references();
  register_loss_references();
  register_update_references();
}

}  // namespace headway::host
