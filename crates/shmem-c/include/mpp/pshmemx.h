/*
 * Rushmem, an OpenSHMEM 1.6 library: the deprecated place of pshmemx.h.
 *
 * Written by `cargo xtask codegen`; do not edit.
 */
#include "../pshmemx.h"
