/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * types.h - fixed-width names for the headers of abi/, policy/ and locks/.
 *
 * The same headers are compiled for the host, for the freestanding guest and for BPF. BPF code brings the
 * kernel's own u8..u64, so the names here carry a prefix and clash with nobody.
 */
#ifndef UNSPIN_ABI_TYPES_H
#define UNSPIN_ABI_TYPES_H

typedef unsigned char unspin_u8;
typedef unsigned short unspin_u16;
typedef unsigned int unspin_u32;
typedef unsigned long long unspin_u64;
typedef signed long long unspin_s64;

#define UNSPIN_ASSERT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has changed its size")
#define UNSPIN_ASSERT_OFFSET(type, field, bytes)                                                                       \
	_Static_assert(__builtin_offsetof(type, field) == (bytes), #type "." #field " has moved")

#endif
