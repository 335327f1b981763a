/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* names.c - the words of lock_kinds.h as strings, so that Rust repeats none of them. */
#include "all.h"

#define NAME(number, name) [number] = #name,
const char *const unspin_lock_names[UNSPIN_LOCK_KIND_COUNT] = {UNSPIN_LOCK_KINDS(NAME)};
