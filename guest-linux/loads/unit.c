// SPDX-License-Identifier: GPL-2.0-only
/* What the load "make" compiles: 256 functions after the preprocessor, no header. */
#define CAT(a, b) a##b
#define ONE(n)                                                                                                         \
	int CAT(work_, n)(int *table, int size)                                                                        \
	{                                                                                                              \
		int sum = n;                                                                                           \
		for (int i = 0; i < size; i++) {                                                                       \
			switch ((table[i] ^ n) & 7) {                                                                  \
			case 0:                                                                                        \
				sum += table[i] * 3;                                                                   \
				break;                                                                                 \
			case 1:                                                                                        \
				sum -= table[i] >> 1;                                                                  \
				break;                                                                                 \
			case 2:                                                                                        \
				sum ^= i << 2;                                                                         \
				break;                                                                                 \
			case 3:                                                                                        \
				table[i] = sum;                                                                        \
				break;                                                                                 \
			default:                                                                                       \
				sum = sum * 31 + i;                                                                    \
			}                                                                                              \
		}                                                                                                      \
		return sum;                                                                                            \
	}
#define FOUR(n) ONE(CAT(n, 0)) ONE(CAT(n, 1)) ONE(CAT(n, 2)) ONE(CAT(n, 3))
#define SIXTEEN(n) FOUR(CAT(n, 4)) FOUR(CAT(n, 5)) FOUR(CAT(n, 6)) FOUR(CAT(n, 7))
#define SIXTY_FOUR(n) SIXTEEN(CAT(n, 1)) SIXTEEN(CAT(n, 2)) SIXTEEN(CAT(n, 3)) SIXTEEN(CAT(n, 5))
SIXTY_FOUR(1)
SIXTY_FOUR(2)
SIXTY_FOUR(3)
SIXTY_FOUR(4)
