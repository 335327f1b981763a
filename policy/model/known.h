/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * known.h - facts that may be unknown: three-valued logic (Kleene's), so that a decision is known exactly when no
 * unknown fact could change it.
 */
#ifndef UNSPIN_POLICY_MODEL_KNOWN_H
#define UNSPIN_POLICY_MODEL_KNOWN_H

#include "../../abi/types.h"

enum unspin_known {
	UNSPIN_NO = 0,
	UNSPIN_YES = 1,
	UNSPIN_NOT_KNOWN = 2,
	UNSPIN_KNOWN_VALUES = 3,
};

static inline unspin_u32 unspin_known_and(unspin_u32 a, unspin_u32 b)
{
	if (a == UNSPIN_NO || b == UNSPIN_NO)
		return UNSPIN_NO;
	return a == UNSPIN_YES && b == UNSPIN_YES ? UNSPIN_YES : UNSPIN_NOT_KNOWN;
}

static inline unspin_u32 unspin_known_or(unspin_u32 a, unspin_u32 b)
{
	if (a == UNSPIN_YES || b == UNSPIN_YES)
		return UNSPIN_YES;
	return a == UNSPIN_NO && b == UNSPIN_NO ? UNSPIN_NO : UNSPIN_NOT_KNOWN;
}

static inline unspin_u32 unspin_known_not(unspin_u32 a)
{
	if (a == UNSPIN_NO)
		return UNSPIN_YES;
	return a == UNSPIN_YES ? UNSPIN_NO : UNSPIN_NOT_KNOWN;
}

#endif
