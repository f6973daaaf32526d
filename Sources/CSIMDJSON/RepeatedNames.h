// Members given twice: readers disagree on which of them counts.
#pragma once

#include "CSIMDJSON.h"

namespace perennial {

/// `object` is its first token. The name of the first member that has the name of one before it, or NULL. Objects inside are
/// not looked into. Throws when there is no memory.
const perennial_json_token *repeated_name(const perennial_json_token *object);

} // namespace perennial
