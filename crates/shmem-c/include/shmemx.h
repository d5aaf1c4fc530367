/*
 * Rushmem, an OpenSHMEM 1.6 library: what vendors add to the standard.
 *
 * Written by `cargo xtask codegen`; do not edit.
 */
#ifndef RUSHMEM_SHMEMX_H
#define RUSHMEM_SHMEMX_H

#include "shmem.h"

/* Cray: handle of no team. */
#define SHMEM_TEAM_NULL ((shmem_team_t)0)
/* Cray: handle of the team of PEs on the caller's machine. */
#define SHMEM_TEAM_NODE ((shmem_team_t)3)
/* Sandia: the same team. */
#define SHMEMX_TEAM_NODE ((shmem_team_t)3)
/* Cray: colour of a PE that joins no team of shmemx_team_split. */
#define SHMEM_COLOR_UNDEFINED (-1)
/* Sandia: hint to shmem_malloc_with_hints: no barrier at the end of the call. */
#define SHMEMX_MALLOC_NO_BARRIER 4L

#if defined(__cplusplus)
extern "C" {
#endif

/* Cray OpenSHMEMX: teams */
void shmemx_team_split_strided(shmem_team_t parent_team, int PE_start, int PE_stride, int PE_size,
    shmem_team_t *newteam);
void shmemx_team_destroy(shmem_team_t *newteam);
int shmemx_team_my_pe(shmem_team_t team);
int shmemx_team_mype(shmem_team_t team);
int shmemx_team_n_pes(shmem_team_t team);
int shmemx_team_npes(shmem_team_t team);
int shmemx_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team);

#if defined(__cplusplus)
}
#endif

#endif /* RUSHMEM_SHMEMX_H */
