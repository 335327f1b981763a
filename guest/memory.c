/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* memory.c - memcpy() and memset(), which a compiler may call for large copies even where the source does not. */
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
