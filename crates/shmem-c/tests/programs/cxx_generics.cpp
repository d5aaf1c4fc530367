/* The type-generic calls, which are overloads in C++. */
#include "c11_generics.c"
