/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* bound.h - what bindgen reads: the calls of both files, and the types of policy/. */
#ifndef UNSPIN_POLICY_BOUND_H
#define UNSPIN_POLICY_BOUND_H

#include "exports.h"
#include "steering_exports.h"

#endif
