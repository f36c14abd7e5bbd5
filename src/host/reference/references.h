// Registers the references of the operators in src/graph. A call, not static objects: a static library would
// drop those.
#pragma once

namespace headway::host {

void register_references();

void register_linear_references();
void register_elementwise_references();
void register_sequence_references();
void register_loss_references();
void register_update_references();

}  // namespace headway::host
