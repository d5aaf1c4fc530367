/*
 * Rushmem, an OpenSHMEM 1.6 library: the entry points of the extensions that profiling tools call.
 *
 * Written by `cargo xtask codegen`; do not edit.
 */
#ifndef RUSHMEM_PSHMEMX_H
#define RUSHMEM_PSHMEMX_H

#include "pshmem.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Cray OpenSHMEMX: teams */
void pshmemx_team_split_strided(shmem_team_t parent_team, int PE_start, int PE_stride, int PE_size,
    shmem_team_t *newteam);
void pshmemx_team_destroy(shmem_team_t *newteam);
int pshmemx_team_my_pe(shmem_team_t team);
int pshmemx_team_mype(shmem_team_t team);
int pshmemx_team_n_pes(shmem_team_t team);
int pshmemx_team_npes(shmem_team_t team);
int pshmemx_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team);

#if defined(__cplusplus)
}
#endif

#endif /* RUSHMEM_PSHMEMX_H */
