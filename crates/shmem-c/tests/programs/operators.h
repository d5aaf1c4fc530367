/* The operators of reductions in C, and the operands of each PE. */
#ifndef OPERATORS_H
#define OPERATORS_H

#include "check.h"
#include <complex.h>

#define AND_OF(a, b) ((a) & (b))
#define OR_OF(a, b) ((a) | (b))
#define XOR_OF(a, b) ((a) ^ (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define SUM_OF(a, b) ((a) + (b))
#define PROD_OF(a, b) ((a) * (b))

/* Element i of PE `pe`: full words for bitwise operators and for order, small numbers for sums and
 * products, which must be exact. */
#define WORD_OF(T, pe, i) VALUE(T, 31 * (pe) + (i))
#define SUMMAND_OF(T, pe, i) ((T)(((pe) + 3 * (i)) % 7 - ((T)-1 < (T)1 ? 2 : 0)))
#define FACTOR_OF(T, pe, i) ((T)(((pe) + (i)) % 5 == 0 ? 2 : ((pe) + (i)) % 5 == 1 && (T)-1 < (T)1 ? -1 : 1))
#define COMPLEX_SUMMAND_OF(T, pe, i) ((T)(((pe) + (i)) % 7 - 3 + I * (((pe) * 3 + (i)) % 5)))
#define COMPLEX_FACTOR_OF(T, pe, i) ((T)(((pe) + (i)) % 3 == 0 ? I : ((pe) + (i)) % 3 == 1 ? 1 + I : -1))

#endif
