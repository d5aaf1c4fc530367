/*
 * What stable Rust cannot do: refer to a function that may not be there.
 */

#include <stddef.h>

/* FLUSH(unit) of gfortran's library; a null pointer means every unit. */
extern void _gfortran_flush_i4(int *unit) __attribute__((weak));

/* Writes what the units of the program's Fortran library hold back, where that library is known. */
void rushmem_flush_units(void) {
    if (_gfortran_flush_i4 != NULL)
        _gfortran_flush_i4(NULL);
}
