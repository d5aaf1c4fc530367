/* The type-generic calls as overloads of C++. */
#include "c11_generics.c"
