/*
 * A call of a function that a program may lack, by a weak symbol, which stable Rust cannot declare.
 */

#include <stddef.h>

/* FLUSH(unit) of gfortran's library; a null pointer means every unit. */
extern void _gfortran_flush_i4(int *unit) __attribute__((weak));

/* Writes the buffers of all Fortran units, if the program uses gfortran's library. */
void rushmem_flush_units(void) {
    if (_gfortran_flush_i4 != NULL)
        _gfortran_flush_i4(NULL);
}
