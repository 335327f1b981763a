/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* memory.c - the two functions that a compiler may call for large copies, whether or not the source names them. */
typedef __SIZE_TYPE__ size_t;

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	void *result = to;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
	return result;
}

void *memset(void *to, int value, size_t bytes)
{
	void *result = to;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
	return result;
}
