/* The type tables of OpenSHMEM 1.6 as callback macros: X(TYPENAME, TYPE). */
#ifndef TYPES_H
#define TYPES_H

/* Standard AMO types (section 9.7, table 5). */
#define AMO_TYPES(X)                                                                                                   \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)                                                                                             \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)                                                                                                \
    X(size, size_t)                                                                                                    \
    X(ptrdiff, ptrdiff_t)

/* Extended AMO types: fetch, set and swap only. */
#define EXTENDED_AMO_TYPES(X) X(float, float) X(double, double) AMO_TYPES(X)

/* Bitwise AMO types. */
#define BITWISE_AMO_TYPES(X)                                                                                           \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)

/* Types of the deprecated AMO names, without and with the floating ones. */
#define OLD_AMO_TYPES(X) X(int, int) X(long, long) X(longlong, long long)
#define OLD_EXTENDED_AMO_TYPES(X) X(float, float) X(double, double) OLD_AMO_TYPES(X)

/* Scalar wait and test. */
#define WAIT_TYPES(X) AMO_TYPES(X) X(short, short) X(ushort, unsigned short)
#define OLD_WAIT_TYPES(X) X(short, short) OLD_AMO_TYPES(X)

#define SIGNED_TYPES(X)                                                                                                \
    X(char, char)                                                                                                      \
    X(schar, signed char)                                                                                              \
    X(short, short)                                                                                                    \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)                                                                                             \
    X(ptrdiff, ptrdiff_t)

/* Types of the team AND, OR and XOR reductions. */
#define TEAM_BITWISE_TYPES(X)                                                                                          \
    X(uchar, unsigned char)                                                                                            \
    X(ushort, unsigned short)                                                                                          \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int8, int8_t)                                                                                                    \
    X(int16, int16_t)                                                                                                  \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint8, uint8_t)                                                                                                  \
    X(uint16, uint16_t)                                                                                                \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)                                                                                                \
    X(size, size_t)

#define FLOATING_TYPES(X) X(float, float) X(double, double) X(longdouble, long double)
#define COMPLEX_TYPES(X) X(complexf, float _Complex) X(complexd, double _Complex)

/* Standard RMA types (section 9.6, table 3), also those of MAX and MIN. */
#define RMA_TYPES(X) SIGNED_TYPES(X) TEAM_BITWISE_TYPES(X) FLOATING_TYPES(X)

/* Types of SUM and PROD and of the scans. */
#define TEAM_SUM_TYPES(X) RMA_TYPES(X) COMPLEX_TYPES(X)

/* Types of the active-set reductions. */
#define SET_BITWISE_TYPES(X) OLD_WAIT_TYPES(X)
#define SET_ORDER_TYPES(X) SET_BITWISE_TYPES(X) FLOATING_TYPES(X)
#define SET_SUM_TYPES(X) SET_ORDER_TYPES(X) COMPLEX_TYPES(X)

/* Element sizes in bits of the sized RMA routines. */
#define SIZES(X) X(8) X(16) X(32) X(64) X(128)

#endif
