/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* exports.h - the headers of which Rust bindings are generated. */
#include "../../../abi/guest/lock_kinds.h"
#include "../../../locks/parts/work.h"
#include "tau.h"
#include "lab.h"

unspin_u64 unspin_lab_random_start(unspin_u64 seed, unspin_u32 number);
