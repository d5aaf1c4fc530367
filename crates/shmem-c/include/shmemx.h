/*
 * Rushmem, an OpenSHMEM 1.6 library: the functions of the standard; extensions there are none yet.
 *
 * Written by `cargo xtask codegen`; do not edit.
 */
#ifndef RUSHMEM_SHMEMX_H
#define RUSHMEM_SHMEMX_H

#include "shmem.h"

#endif /* RUSHMEM_SHMEMX_H */
