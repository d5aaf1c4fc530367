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
/* Cray: color of a PE that joins no team of shmemx_team_split. */
#define SHMEM_COLOR_UNDEFINED (-1)
/* Cray: length of a pSync array of shmemx_alltoallv or shmemx_alltoallv_packed. */
#define _SHMEM_ALLTOALL_SYNC_SIZE 1
/* Cray: length of a pSync array of an alltoalls. */
#define _SHMEM_ALLTOALLS_SYNC_SIZE 1
/* Rushmem: handle of no request. */
#define SHMEMX_REQ_NULL ((shmemx_req_t)0)
/* Sandia: hint to shmem_malloc_with_hints: no barrier at the end of the call. */
#define SHMEMX_MALLOC_NO_BARRIER 4L

#ifndef RUSHMEM_EXTENSION_TYPES
#define RUSHMEM_EXTENSION_TYPES
/* Sandia: operations that were issued (pending) and completed on a context. */
typedef struct {
    uint64_t pending_put;
    uint64_t pending_get;
    uint64_t completed_put;
    uint64_t completed_get;
    uint64_t target;
} shmemx_pcntr_t;

/* A non-blocking collective that was not yet waited for. */
typedef struct rushmem_req *shmemx_req_t;
#endif

#if defined(__cplusplus)
extern "C" {
#endif

/* Cray OpenSHMEMX: teams */
void shmemx_team_split_strided(shmem_team_t parent_team, int PE_start, int PE_stride, int PE_size,
    shmem_team_t *newteam);
void shmemx_team_split_2d(shmem_team_t parent_team, int xrange, int yrange,
    shmem_team_t *xaxis_team, shmem_team_t *yaxis_team);
void shmemx_team_split_3d(shmem_team_t parent_team, int xrange, int yrange, int zrange,
    shmem_team_t *xaxis_team, shmem_team_t *yaxis_team, shmem_team_t *zaxis_team);
void shmemx_team_split(shmem_team_t parent_team, int color, int key, shmem_team_t *newteam);
void shmemx_team_split_color(shmem_team_t parent_team, int color, int key, shmem_team_t *newteam);
void shmemx_team_destroy(shmem_team_t *newteam);
int shmemx_team_my_pe(shmem_team_t team);
int shmemx_team_mype(shmem_team_t team);
int shmemx_team_n_pes(shmem_team_t team);
int shmemx_team_npes(shmem_team_t team);
int shmemx_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team);

/* Cray OpenSHMEMX: collectives */
void shmemx_alltoallv(void *target, const size_t *t_offsets, size_t *t_sizes, const void *source,
    const size_t *s_offsets, const size_t *s_sizes, int PE_start, int logPE_stride, int PE_size,
    long *pSync);
void shmemx_alltoallv_packed(void *target, size_t target_len, size_t *t_size, const void *source,
    const size_t *s_offsets, const size_t *s_sizes, int PE_start, int logPE_stride, int PE_size,
    long *pSync);
void shmemx_team_short_and_to_all(shmem_team_t team, short *dest, const short *source, int nreduce,
    short *pWrk, long *pSync);
void shmemx_team_int_and_to_all(shmem_team_t team, int *dest, const int *source, int nreduce,
    int *pWrk, long *pSync);
void shmemx_team_long_and_to_all(shmem_team_t team, long *dest, const long *source, int nreduce,
    long *pWrk, long *pSync);
void shmemx_team_longlong_and_to_all(shmem_team_t team, long long *dest, const long long *source,
    int nreduce, long long *pWrk, long *pSync);
void shmemx_team_short_or_to_all(shmem_team_t team, short *dest, const short *source, int nreduce,
    short *pWrk, long *pSync);
void shmemx_team_int_or_to_all(shmem_team_t team, int *dest, const int *source, int nreduce,
    int *pWrk, long *pSync);
void shmemx_team_long_or_to_all(shmem_team_t team, long *dest, const long *source, int nreduce,
    long *pWrk, long *pSync);
void shmemx_team_longlong_or_to_all(shmem_team_t team, long long *dest, const long long *source,
    int nreduce, long long *pWrk, long *pSync);
void shmemx_team_short_xor_to_all(shmem_team_t team, short *dest, const short *source, int nreduce,
    short *pWrk, long *pSync);
void shmemx_team_int_xor_to_all(shmem_team_t team, int *dest, const int *source, int nreduce,
    int *pWrk, long *pSync);
void shmemx_team_long_xor_to_all(shmem_team_t team, long *dest, const long *source, int nreduce,
    long *pWrk, long *pSync);
void shmemx_team_longlong_xor_to_all(shmem_team_t team, long long *dest, const long long *source,
    int nreduce, long long *pWrk, long *pSync);
void shmemx_team_short_max_to_all(shmem_team_t team, short *dest, const short *source, int nreduce,
    short *pWrk, long *pSync);
void shmemx_team_int_max_to_all(shmem_team_t team, int *dest, const int *source, int nreduce,
    int *pWrk, long *pSync);
void shmemx_team_long_max_to_all(shmem_team_t team, long *dest, const long *source, int nreduce,
    long *pWrk, long *pSync);
void shmemx_team_longlong_max_to_all(shmem_team_t team, long long *dest, const long long *source,
    int nreduce, long long *pWrk, long *pSync);
void shmemx_team_float_max_to_all(shmem_team_t team, float *dest, const float *source, int nreduce,
    float *pWrk, long *pSync);
void shmemx_team_double_max_to_all(shmem_team_t team, double *dest, const double *source,
    int nreduce, double *pWrk, long *pSync);
void shmemx_team_longdouble_max_to_all(shmem_team_t team, long double *dest,
    const long double *source, int nreduce, long double *pWrk, long *pSync);
void shmemx_team_short_min_to_all(shmem_team_t team, short *dest, const short *source, int nreduce,
    short *pWrk, long *pSync);
void shmemx_team_int_min_to_all(shmem_team_t team, int *dest, const int *source, int nreduce,
    int *pWrk, long *pSync);
void shmemx_team_long_min_to_all(shmem_team_t team, long *dest, const long *source, int nreduce,
    long *pWrk, long *pSync);
void shmemx_team_longlong_min_to_all(shmem_team_t team, long long *dest, const long long *source,
    int nreduce, long long *pWrk, long *pSync);
void shmemx_team_float_min_to_all(shmem_team_t team, float *dest, const float *source, int nreduce,
    float *pWrk, long *pSync);
void shmemx_team_double_min_to_all(shmem_team_t team, double *dest, const double *source,
    int nreduce, double *pWrk, long *pSync);
void shmemx_team_longdouble_min_to_all(shmem_team_t team, long double *dest,
    const long double *source, int nreduce, long double *pWrk, long *pSync);
void shmemx_team_short_sum_to_all(shmem_team_t team, short *dest, const short *source, int nreduce,
    short *pWrk, long *pSync);
void shmemx_team_int_sum_to_all(shmem_team_t team, int *dest, const int *source, int nreduce,
    int *pWrk, long *pSync);
void shmemx_team_long_sum_to_all(shmem_team_t team, long *dest, const long *source, int nreduce,
    long *pWrk, long *pSync);
void shmemx_team_longlong_sum_to_all(shmem_team_t team, long long *dest, const long long *source,
    int nreduce, long long *pWrk, long *pSync);
void shmemx_team_float_sum_to_all(shmem_team_t team, float *dest, const float *source, int nreduce,
    float *pWrk, long *pSync);
void shmemx_team_double_sum_to_all(shmem_team_t team, double *dest, const double *source,
    int nreduce, double *pWrk, long *pSync);
void shmemx_team_longdouble_sum_to_all(shmem_team_t team, long double *dest,
    const long double *source, int nreduce, long double *pWrk, long *pSync);
void shmemx_team_short_prod_to_all(shmem_team_t team, short *dest, const short *source, int nreduce,
    short *pWrk, long *pSync);
void shmemx_team_int_prod_to_all(shmem_team_t team, int *dest, const int *source, int nreduce,
    int *pWrk, long *pSync);
void shmemx_team_long_prod_to_all(shmem_team_t team, long *dest, const long *source, int nreduce,
    long *pWrk, long *pSync);
void shmemx_team_longlong_prod_to_all(shmem_team_t team, long long *dest, const long long *source,
    int nreduce, long long *pWrk, long *pSync);
void shmemx_team_float_prod_to_all(shmem_team_t team, float *dest, const float *source, int nreduce,
    float *pWrk, long *pSync);
void shmemx_team_double_prod_to_all(shmem_team_t team, double *dest, const double *source,
    int nreduce, double *pWrk, long *pSync);
void shmemx_team_longdouble_prod_to_all(shmem_team_t team, long double *dest,
    const long double *source, int nreduce, long double *pWrk, long *pSync);

/* Cray OpenSHMEMX: setup */
int shmemx_init_thread(int requested, int *provided);
void shmemx_query_thread(int *provided);

/* SOS: setup */
void shmemx_register_gettid(uint64_t (*gettid_fn)(void));

/* Cray OpenSHMEMX: order */
void shmemx_local_complete(void);

/* Cray OpenSHMEMX and SOS: signals */
void shmemx_signal_set(uint64_t *sig_addr, uint64_t signal, int pe);
void shmemx_ctx_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe);

/* SOS: signals */
void shmemx_signal_add(uint64_t *sig_addr, uint64_t signal, int pe);
void shmemx_ctx_signal_add(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe);

/* SOS and OSSS-UCX: time */
double shmemx_wtime(void);

/* Rushmem: setup */
const char *shmemx_transport(void);

/* SOS: counters */
void shmemx_pcntr_get_issued_write(shmem_ctx_t ctx, uint64_t *cntr_value);
void shmemx_pcntr_get_issued_read(shmem_ctx_t ctx, uint64_t *cntr_value);
void shmemx_pcntr_get_completed_write(shmem_ctx_t ctx, uint64_t *cntr_value);
void shmemx_pcntr_get_completed_read(shmem_ctx_t ctx, uint64_t *cntr_value);
void shmemx_pcntr_get_completed_target(uint64_t *cntr_value);
void shmemx_pcntr_get_all(shmem_ctx_t ctx, shmemx_pcntr_t *pcntr);

/* SOS: rma */
void shmemx_float_ibput(float *dest, const float *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_double_ibput(double *dest, const double *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_longdouble_ibput(long double *dest, const long double *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_char_ibput(char *dest, const char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_schar_ibput(signed char *dest, const signed char *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_short_ibput(short *dest, const short *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_int_ibput(int *dest, const int *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_long_ibput(long *dest, const long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_longlong_ibput(long long *dest, const long long *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_uchar_ibput(unsigned char *dest, const unsigned char *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ushort_ibput(unsigned short *dest, const unsigned short *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_uint_ibput(unsigned int *dest, const unsigned int *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_ulong_ibput(unsigned long *dest, const unsigned long *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ulonglong_ibput(unsigned long long *dest, const unsigned long long *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_int8_ibput(int8_t *dest, const int8_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_int16_ibput(int16_t *dest, const int16_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_int32_ibput(int32_t *dest, const int32_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_int64_ibput(int64_t *dest, const int64_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_uint8_ibput(uint8_t *dest, const uint8_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_uint16_ibput(uint16_t *dest, const uint16_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_uint32_ibput(uint32_t *dest, const uint32_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_uint64_ibput(uint64_t *dest, const uint64_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_size_ibput(size_t *dest, const size_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_ptrdiff_ibput(ptrdiff_t *dest, const ptrdiff_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_float_ibput(shmem_ctx_t ctx, float *dest, const float *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_double_ibput(shmem_ctx_t ctx, double *dest, const double *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_longdouble_ibput(shmem_ctx_t ctx, long double *dest, const long double *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_char_ibput(shmem_ctx_t ctx, char *dest, const char *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_schar_ibput(shmem_ctx_t ctx, signed char *dest, const signed char *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_short_ibput(shmem_ctx_t ctx, short *dest, const short *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_int_ibput(shmem_ctx_t ctx, int *dest, const int *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_long_ibput(shmem_ctx_t ctx, long *dest, const long *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_longlong_ibput(shmem_ctx_t ctx, long long *dest, const long long *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_uchar_ibput(shmem_ctx_t ctx, unsigned char *dest, const unsigned char *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ushort_ibput(shmem_ctx_t ctx, unsigned short *dest, const unsigned short *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_uint_ibput(shmem_ctx_t ctx, unsigned int *dest, const unsigned int *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ulong_ibput(shmem_ctx_t ctx, unsigned long *dest, const unsigned long *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ulonglong_ibput(shmem_ctx_t ctx, unsigned long long *dest,
    const unsigned long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks,
    int pe);
void shmemx_ctx_int8_ibput(shmem_ctx_t ctx, int8_t *dest, const int8_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_int16_ibput(shmem_ctx_t ctx, int16_t *dest, const int16_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_int32_ibput(shmem_ctx_t ctx, int32_t *dest, const int32_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_int64_ibput(shmem_ctx_t ctx, int64_t *dest, const int64_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_uint8_ibput(shmem_ctx_t ctx, uint8_t *dest, const uint8_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_uint16_ibput(shmem_ctx_t ctx, uint16_t *dest, const uint16_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_uint32_ibput(shmem_ctx_t ctx, uint32_t *dest, const uint32_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_uint64_ibput(shmem_ctx_t ctx, uint64_t *dest, const uint64_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_size_ibput(shmem_ctx_t ctx, size_t *dest, const size_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ptrdiff_ibput(shmem_ctx_t ctx, ptrdiff_t *dest, const ptrdiff_t *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ibput8(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_ibput16(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_ibput32(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_ibput64(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_ibput128(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_ctx_ibput8(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ibput16(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ibput32(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ibput64(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ibput128(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_float_ibget(float *dest, const float *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_double_ibget(double *dest, const double *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_longdouble_ibget(long double *dest, const long double *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_char_ibget(char *dest, const char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_schar_ibget(signed char *dest, const signed char *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_short_ibget(short *dest, const short *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_int_ibget(int *dest, const int *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_long_ibget(long *dest, const long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_longlong_ibget(long long *dest, const long long *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_uchar_ibget(unsigned char *dest, const unsigned char *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ushort_ibget(unsigned short *dest, const unsigned short *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_uint_ibget(unsigned int *dest, const unsigned int *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_ulong_ibget(unsigned long *dest, const unsigned long *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ulonglong_ibget(unsigned long long *dest, const unsigned long long *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_int8_ibget(int8_t *dest, const int8_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_int16_ibget(int16_t *dest, const int16_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_int32_ibget(int32_t *dest, const int32_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_int64_ibget(int64_t *dest, const int64_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_uint8_ibget(uint8_t *dest, const uint8_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_uint16_ibget(uint16_t *dest, const uint16_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_uint32_ibget(uint32_t *dest, const uint32_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_uint64_ibget(uint64_t *dest, const uint64_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_size_ibget(size_t *dest, const size_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_ptrdiff_ibget(ptrdiff_t *dest, const ptrdiff_t *source, ptrdiff_t dst, ptrdiff_t sst,
    size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_float_ibget(shmem_ctx_t ctx, float *dest, const float *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_double_ibget(shmem_ctx_t ctx, double *dest, const double *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_longdouble_ibget(shmem_ctx_t ctx, long double *dest, const long double *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_char_ibget(shmem_ctx_t ctx, char *dest, const char *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_schar_ibget(shmem_ctx_t ctx, signed char *dest, const signed char *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_short_ibget(shmem_ctx_t ctx, short *dest, const short *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_int_ibget(shmem_ctx_t ctx, int *dest, const int *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_long_ibget(shmem_ctx_t ctx, long *dest, const long *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_longlong_ibget(shmem_ctx_t ctx, long long *dest, const long long *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_uchar_ibget(shmem_ctx_t ctx, unsigned char *dest, const unsigned char *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ushort_ibget(shmem_ctx_t ctx, unsigned short *dest, const unsigned short *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_uint_ibget(shmem_ctx_t ctx, unsigned int *dest, const unsigned int *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ulong_ibget(shmem_ctx_t ctx, unsigned long *dest, const unsigned long *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ulonglong_ibget(shmem_ctx_t ctx, unsigned long long *dest,
    const unsigned long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks,
    int pe);
void shmemx_ctx_int8_ibget(shmem_ctx_t ctx, int8_t *dest, const int8_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_int16_ibget(shmem_ctx_t ctx, int16_t *dest, const int16_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_int32_ibget(shmem_ctx_t ctx, int32_t *dest, const int32_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_int64_ibget(shmem_ctx_t ctx, int64_t *dest, const int64_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_uint8_ibget(shmem_ctx_t ctx, uint8_t *dest, const uint8_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_uint16_ibget(shmem_ctx_t ctx, uint16_t *dest, const uint16_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_uint32_ibget(shmem_ctx_t ctx, uint32_t *dest, const uint32_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_uint64_ibget(shmem_ctx_t ctx, uint64_t *dest, const uint64_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_size_ibget(shmem_ctx_t ctx, size_t *dest, const size_t *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ptrdiff_ibget(shmem_ctx_t ctx, ptrdiff_t *dest, const ptrdiff_t *source,
    ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ibget8(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_ibget16(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_ibget32(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_ibget64(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_ibget128(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
    size_t nblocks, int pe);
void shmemx_ctx_ibget8(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ibget16(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ibget32(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ibget64(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
void shmemx_ctx_ibget128(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);

/* SOS: collectives */
int shmemx_char_sum_inscan(shmem_team_t team, char *dest, const char *source, size_t nelems);
int shmemx_schar_sum_inscan(shmem_team_t team, signed char *dest, const signed char *source,
    size_t nelems);
int shmemx_short_sum_inscan(shmem_team_t team, short *dest, const short *source, size_t nelems);
int shmemx_int_sum_inscan(shmem_team_t team, int *dest, const int *source, size_t nelems);
int shmemx_long_sum_inscan(shmem_team_t team, long *dest, const long *source, size_t nelems);
int shmemx_longlong_sum_inscan(shmem_team_t team, long long *dest, const long long *source,
    size_t nelems);
int shmemx_ptrdiff_sum_inscan(shmem_team_t team, ptrdiff_t *dest, const ptrdiff_t *source,
    size_t nelems);
int shmemx_uchar_sum_inscan(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nelems);
int shmemx_ushort_sum_inscan(shmem_team_t team, unsigned short *dest, const unsigned short *source,
    size_t nelems);
int shmemx_uint_sum_inscan(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nelems);
int shmemx_ulong_sum_inscan(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nelems);
int shmemx_ulonglong_sum_inscan(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nelems);
int shmemx_int8_sum_inscan(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nelems);
int shmemx_int16_sum_inscan(shmem_team_t team, int16_t *dest, const int16_t *source, size_t nelems);
int shmemx_int32_sum_inscan(shmem_team_t team, int32_t *dest, const int32_t *source, size_t nelems);
int shmemx_int64_sum_inscan(shmem_team_t team, int64_t *dest, const int64_t *source, size_t nelems);
int shmemx_uint8_sum_inscan(shmem_team_t team, uint8_t *dest, const uint8_t *source, size_t nelems);
int shmemx_uint16_sum_inscan(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nelems);
int shmemx_uint32_sum_inscan(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nelems);
int shmemx_uint64_sum_inscan(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nelems);
int shmemx_size_sum_inscan(shmem_team_t team, size_t *dest, const size_t *source, size_t nelems);
int shmemx_float_sum_inscan(shmem_team_t team, float *dest, const float *source, size_t nelems);
int shmemx_double_sum_inscan(shmem_team_t team, double *dest, const double *source, size_t nelems);
int shmemx_longdouble_sum_inscan(shmem_team_t team, long double *dest, const long double *source,
    size_t nelems);
int shmemx_complexd_sum_inscan(shmem_team_t team, rushmem_complexd *dest,
    const rushmem_complexd *source, size_t nelems);
int shmemx_complexf_sum_inscan(shmem_team_t team, rushmem_complexf *dest,
    const rushmem_complexf *source, size_t nelems);
int shmemx_char_sum_exscan(shmem_team_t team, char *dest, const char *source, size_t nelems);
int shmemx_schar_sum_exscan(shmem_team_t team, signed char *dest, const signed char *source,
    size_t nelems);
int shmemx_short_sum_exscan(shmem_team_t team, short *dest, const short *source, size_t nelems);
int shmemx_int_sum_exscan(shmem_team_t team, int *dest, const int *source, size_t nelems);
int shmemx_long_sum_exscan(shmem_team_t team, long *dest, const long *source, size_t nelems);
int shmemx_longlong_sum_exscan(shmem_team_t team, long long *dest, const long long *source,
    size_t nelems);
int shmemx_ptrdiff_sum_exscan(shmem_team_t team, ptrdiff_t *dest, const ptrdiff_t *source,
    size_t nelems);
int shmemx_uchar_sum_exscan(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nelems);
int shmemx_ushort_sum_exscan(shmem_team_t team, unsigned short *dest, const unsigned short *source,
    size_t nelems);
int shmemx_uint_sum_exscan(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nelems);
int shmemx_ulong_sum_exscan(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nelems);
int shmemx_ulonglong_sum_exscan(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nelems);
int shmemx_int8_sum_exscan(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nelems);
int shmemx_int16_sum_exscan(shmem_team_t team, int16_t *dest, const int16_t *source, size_t nelems);
int shmemx_int32_sum_exscan(shmem_team_t team, int32_t *dest, const int32_t *source, size_t nelems);
int shmemx_int64_sum_exscan(shmem_team_t team, int64_t *dest, const int64_t *source, size_t nelems);
int shmemx_uint8_sum_exscan(shmem_team_t team, uint8_t *dest, const uint8_t *source, size_t nelems);
int shmemx_uint16_sum_exscan(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nelems);
int shmemx_uint32_sum_exscan(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nelems);
int shmemx_uint64_sum_exscan(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nelems);
int shmemx_size_sum_exscan(shmem_team_t team, size_t *dest, const size_t *source, size_t nelems);
int shmemx_float_sum_exscan(shmem_team_t team, float *dest, const float *source, size_t nelems);
int shmemx_double_sum_exscan(shmem_team_t team, double *dest, const double *source, size_t nelems);
int shmemx_longdouble_sum_exscan(shmem_team_t team, long double *dest, const long double *source,
    size_t nelems);
int shmemx_complexd_sum_exscan(shmem_team_t team, rushmem_complexd *dest,
    const rushmem_complexd *source, size_t nelems);
int shmemx_complexf_sum_exscan(shmem_team_t team, rushmem_complexf *dest,
    const rushmem_complexf *source, size_t nelems);

/* SOS and Open MPI: collectives */
int shmem_short_and_reduce(shmem_team_t team, short *dest, const short *source, size_t nreduce);
int shmem_int_and_reduce(shmem_team_t team, int *dest, const int *source, size_t nreduce);
int shmem_long_and_reduce(shmem_team_t team, long *dest, const long *source, size_t nreduce);
int shmem_longlong_and_reduce(shmem_team_t team, long long *dest, const long long *source,
    size_t nreduce);
int shmem_short_or_reduce(shmem_team_t team, short *dest, const short *source, size_t nreduce);
int shmem_int_or_reduce(shmem_team_t team, int *dest, const int *source, size_t nreduce);
int shmem_long_or_reduce(shmem_team_t team, long *dest, const long *source, size_t nreduce);
int shmem_longlong_or_reduce(shmem_team_t team, long long *dest, const long long *source,
    size_t nreduce);
int shmem_short_xor_reduce(shmem_team_t team, short *dest, const short *source, size_t nreduce);
int shmem_int_xor_reduce(shmem_team_t team, int *dest, const int *source, size_t nreduce);
int shmem_long_xor_reduce(shmem_team_t team, long *dest, const long *source, size_t nreduce);
int shmem_longlong_xor_reduce(shmem_team_t team, long long *dest, const long long *source,
    size_t nreduce);

/* Open MPI: atomics */
void shmem_int_atomic_and(int *dest, int value, int pe);
void shmem_long_atomic_and(long *dest, long value, int pe);
void shmem_longlong_atomic_and(long long *dest, long long value, int pe);
void shmem_ctx_int_atomic_and(shmem_ctx_t ctx, int *dest, int value, int pe);
void shmem_ctx_long_atomic_and(shmem_ctx_t ctx, long *dest, long value, int pe);
void shmem_ctx_longlong_atomic_and(shmem_ctx_t ctx, long long *dest, long long value, int pe);
void shmem_int_atomic_or(int *dest, int value, int pe);
void shmem_long_atomic_or(long *dest, long value, int pe);
void shmem_longlong_atomic_or(long long *dest, long long value, int pe);
void shmem_ctx_int_atomic_or(shmem_ctx_t ctx, int *dest, int value, int pe);
void shmem_ctx_long_atomic_or(shmem_ctx_t ctx, long *dest, long value, int pe);
void shmem_ctx_longlong_atomic_or(shmem_ctx_t ctx, long long *dest, long long value, int pe);
void shmem_int_atomic_xor(int *dest, int value, int pe);
void shmem_long_atomic_xor(long *dest, long value, int pe);
void shmem_longlong_atomic_xor(long long *dest, long long value, int pe);
void shmem_ctx_int_atomic_xor(shmem_ctx_t ctx, int *dest, int value, int pe);
void shmem_ctx_long_atomic_xor(shmem_ctx_t ctx, long *dest, long value, int pe);
void shmem_ctx_longlong_atomic_xor(shmem_ctx_t ctx, long long *dest, long long value, int pe);
int shmem_int_atomic_fetch_and(int *dest, int value, int pe);
long shmem_long_atomic_fetch_and(long *dest, long value, int pe);
long long shmem_longlong_atomic_fetch_and(long long *dest, long long value, int pe);
int shmem_ctx_int_atomic_fetch_and(shmem_ctx_t ctx, int *dest, int value, int pe);
long shmem_ctx_long_atomic_fetch_and(shmem_ctx_t ctx, long *dest, long value, int pe);
long long shmem_ctx_longlong_atomic_fetch_and(shmem_ctx_t ctx, long long *dest, long long value,
    int pe);
int shmem_int_atomic_fetch_or(int *dest, int value, int pe);
long shmem_long_atomic_fetch_or(long *dest, long value, int pe);
long long shmem_longlong_atomic_fetch_or(long long *dest, long long value, int pe);
int shmem_ctx_int_atomic_fetch_or(shmem_ctx_t ctx, int *dest, int value, int pe);
long shmem_ctx_long_atomic_fetch_or(shmem_ctx_t ctx, long *dest, long value, int pe);
long long shmem_ctx_longlong_atomic_fetch_or(shmem_ctx_t ctx, long long *dest, long long value,
    int pe);
int shmem_int_atomic_fetch_xor(int *dest, int value, int pe);
long shmem_long_atomic_fetch_xor(long *dest, long value, int pe);
long long shmem_longlong_atomic_fetch_xor(long long *dest, long long value, int pe);
int shmem_ctx_int_atomic_fetch_xor(shmem_ctx_t ctx, int *dest, int value, int pe);
long shmem_ctx_long_atomic_fetch_xor(shmem_ctx_t ctx, long *dest, long value, int pe);
long long shmem_ctx_longlong_atomic_fetch_xor(shmem_ctx_t ctx, long long *dest, long long value,
    int pe);

/* OSSS-UCX: order */
int shmemx_fence_test(void);
int shmemx_ctx_fence_test(shmem_ctx_t ctx);
int shmemx_quiet_test(void);
int shmemx_ctx_quiet_test(shmem_ctx_t ctx);

/* Rushmem: collectives */
int shmemx_team_sync_nb(shmem_team_t team, shmemx_req_t *req);
int shmemx_float_broadcast_nb(shmem_team_t team, float *dest, const float *source, size_t nelems,
    int PE_root, shmemx_req_t *req);
int shmemx_double_broadcast_nb(shmem_team_t team, double *dest, const double *source, size_t nelems,
    int PE_root, shmemx_req_t *req);
int shmemx_longdouble_broadcast_nb(shmem_team_t team, long double *dest, const long double *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_char_broadcast_nb(shmem_team_t team, char *dest, const char *source, size_t nelems,
    int PE_root, shmemx_req_t *req);
int shmemx_schar_broadcast_nb(shmem_team_t team, signed char *dest, const signed char *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_short_broadcast_nb(shmem_team_t team, short *dest, const short *source, size_t nelems,
    int PE_root, shmemx_req_t *req);
int shmemx_int_broadcast_nb(shmem_team_t team, int *dest, const int *source, size_t nelems,
    int PE_root, shmemx_req_t *req);
int shmemx_long_broadcast_nb(shmem_team_t team, long *dest, const long *source, size_t nelems,
    int PE_root, shmemx_req_t *req);
int shmemx_longlong_broadcast_nb(shmem_team_t team, long long *dest, const long long *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_uchar_broadcast_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_ushort_broadcast_nb(shmem_team_t team, unsigned short *dest,
    const unsigned short *source, size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_uint_broadcast_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_ulong_broadcast_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_ulonglong_broadcast_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_int8_broadcast_nb(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nelems,
    int PE_root, shmemx_req_t *req);
int shmemx_int16_broadcast_nb(shmem_team_t team, int16_t *dest, const int16_t *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_int32_broadcast_nb(shmem_team_t team, int32_t *dest, const int32_t *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_int64_broadcast_nb(shmem_team_t team, int64_t *dest, const int64_t *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_uint8_broadcast_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_uint16_broadcast_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_uint32_broadcast_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_uint64_broadcast_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_size_broadcast_nb(shmem_team_t team, size_t *dest, const size_t *source, size_t nelems,
    int PE_root, shmemx_req_t *req);
int shmemx_ptrdiff_broadcast_nb(shmem_team_t team, ptrdiff_t *dest, const ptrdiff_t *source,
    size_t nelems, int PE_root, shmemx_req_t *req);
int shmemx_broadcastmem_nb(shmem_team_t team, void *dest, const void *source, size_t nelems,
    int PE_root, shmemx_req_t *req);
int shmemx_float_collect_nb(shmem_team_t team, float *dest, const float *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_double_collect_nb(shmem_team_t team, double *dest, const double *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_longdouble_collect_nb(shmem_team_t team, long double *dest, const long double *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_char_collect_nb(shmem_team_t team, char *dest, const char *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_schar_collect_nb(shmem_team_t team, signed char *dest, const signed char *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_short_collect_nb(shmem_team_t team, short *dest, const short *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int_collect_nb(shmem_team_t team, int *dest, const int *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_long_collect_nb(shmem_team_t team, long *dest, const long *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_longlong_collect_nb(shmem_team_t team, long long *dest, const long long *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uchar_collect_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ushort_collect_nb(shmem_team_t team, unsigned short *dest, const unsigned short *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint_collect_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ulong_collect_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ulonglong_collect_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nelems, shmemx_req_t *req);
int shmemx_int8_collect_nb(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int16_collect_nb(shmem_team_t team, int16_t *dest, const int16_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int32_collect_nb(shmem_team_t team, int32_t *dest, const int32_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int64_collect_nb(shmem_team_t team, int64_t *dest, const int64_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_uint8_collect_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_uint16_collect_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint32_collect_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint64_collect_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_size_collect_nb(shmem_team_t team, size_t *dest, const size_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_ptrdiff_collect_nb(shmem_team_t team, ptrdiff_t *dest, const ptrdiff_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_collectmem_nb(shmem_team_t team, void *dest, const void *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_float_fcollect_nb(shmem_team_t team, float *dest, const float *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_double_fcollect_nb(shmem_team_t team, double *dest, const double *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_longdouble_fcollect_nb(shmem_team_t team, long double *dest, const long double *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_char_fcollect_nb(shmem_team_t team, char *dest, const char *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_schar_fcollect_nb(shmem_team_t team, signed char *dest, const signed char *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_short_fcollect_nb(shmem_team_t team, short *dest, const short *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int_fcollect_nb(shmem_team_t team, int *dest, const int *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_long_fcollect_nb(shmem_team_t team, long *dest, const long *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_longlong_fcollect_nb(shmem_team_t team, long long *dest, const long long *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uchar_fcollect_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ushort_fcollect_nb(shmem_team_t team, unsigned short *dest, const unsigned short *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint_fcollect_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ulong_fcollect_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ulonglong_fcollect_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nelems, shmemx_req_t *req);
int shmemx_int8_fcollect_nb(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int16_fcollect_nb(shmem_team_t team, int16_t *dest, const int16_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int32_fcollect_nb(shmem_team_t team, int32_t *dest, const int32_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int64_fcollect_nb(shmem_team_t team, int64_t *dest, const int64_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_uint8_fcollect_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_uint16_fcollect_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint32_fcollect_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint64_fcollect_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_size_fcollect_nb(shmem_team_t team, size_t *dest, const size_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_ptrdiff_fcollect_nb(shmem_team_t team, ptrdiff_t *dest, const ptrdiff_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_fcollectmem_nb(shmem_team_t team, void *dest, const void *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_float_alltoall_nb(shmem_team_t team, float *dest, const float *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_double_alltoall_nb(shmem_team_t team, double *dest, const double *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_longdouble_alltoall_nb(shmem_team_t team, long double *dest, const long double *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_char_alltoall_nb(shmem_team_t team, char *dest, const char *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_schar_alltoall_nb(shmem_team_t team, signed char *dest, const signed char *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_short_alltoall_nb(shmem_team_t team, short *dest, const short *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int_alltoall_nb(shmem_team_t team, int *dest, const int *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_long_alltoall_nb(shmem_team_t team, long *dest, const long *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_longlong_alltoall_nb(shmem_team_t team, long long *dest, const long long *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uchar_alltoall_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ushort_alltoall_nb(shmem_team_t team, unsigned short *dest, const unsigned short *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint_alltoall_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ulong_alltoall_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ulonglong_alltoall_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nelems, shmemx_req_t *req);
int shmemx_int8_alltoall_nb(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int16_alltoall_nb(shmem_team_t team, int16_t *dest, const int16_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int32_alltoall_nb(shmem_team_t team, int32_t *dest, const int32_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int64_alltoall_nb(shmem_team_t team, int64_t *dest, const int64_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_uint8_alltoall_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_uint16_alltoall_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint32_alltoall_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint64_alltoall_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_size_alltoall_nb(shmem_team_t team, size_t *dest, const size_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_ptrdiff_alltoall_nb(shmem_team_t team, ptrdiff_t *dest, const ptrdiff_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_alltoallmem_nb(shmem_team_t team, void *dest, const void *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_uchar_and_reduce_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ushort_and_reduce_nb(shmem_team_t team, unsigned short *dest,
    const unsigned short *source, size_t nreduce, shmemx_req_t *req);
int shmemx_uint_and_reduce_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulong_and_reduce_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulonglong_and_reduce_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nreduce, shmemx_req_t *req);
int shmemx_int8_and_reduce_nb(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_int16_and_reduce_nb(shmem_team_t team, int16_t *dest, const int16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int32_and_reduce_nb(shmem_team_t team, int32_t *dest, const int32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int64_and_reduce_nb(shmem_team_t team, int64_t *dest, const int64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint8_and_reduce_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint16_and_reduce_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint32_and_reduce_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint64_and_reduce_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_size_and_reduce_nb(shmem_team_t team, size_t *dest, const size_t *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_uchar_or_reduce_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ushort_or_reduce_nb(shmem_team_t team, unsigned short *dest,
    const unsigned short *source, size_t nreduce, shmemx_req_t *req);
int shmemx_uint_or_reduce_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulong_or_reduce_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulonglong_or_reduce_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nreduce, shmemx_req_t *req);
int shmemx_int8_or_reduce_nb(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_int16_or_reduce_nb(shmem_team_t team, int16_t *dest, const int16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int32_or_reduce_nb(shmem_team_t team, int32_t *dest, const int32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int64_or_reduce_nb(shmem_team_t team, int64_t *dest, const int64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint8_or_reduce_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint16_or_reduce_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint32_or_reduce_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint64_or_reduce_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_size_or_reduce_nb(shmem_team_t team, size_t *dest, const size_t *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_uchar_xor_reduce_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ushort_xor_reduce_nb(shmem_team_t team, unsigned short *dest,
    const unsigned short *source, size_t nreduce, shmemx_req_t *req);
int shmemx_uint_xor_reduce_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulong_xor_reduce_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulonglong_xor_reduce_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nreduce, shmemx_req_t *req);
int shmemx_int8_xor_reduce_nb(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_int16_xor_reduce_nb(shmem_team_t team, int16_t *dest, const int16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int32_xor_reduce_nb(shmem_team_t team, int32_t *dest, const int32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int64_xor_reduce_nb(shmem_team_t team, int64_t *dest, const int64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint8_xor_reduce_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint16_xor_reduce_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint32_xor_reduce_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint64_xor_reduce_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_size_xor_reduce_nb(shmem_team_t team, size_t *dest, const size_t *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_char_max_reduce_nb(shmem_team_t team, char *dest, const char *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_schar_max_reduce_nb(shmem_team_t team, signed char *dest, const signed char *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_short_max_reduce_nb(shmem_team_t team, short *dest, const short *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_int_max_reduce_nb(shmem_team_t team, int *dest, const int *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_long_max_reduce_nb(shmem_team_t team, long *dest, const long *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_longlong_max_reduce_nb(shmem_team_t team, long long *dest, const long long *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ptrdiff_max_reduce_nb(shmem_team_t team, ptrdiff_t *dest, const ptrdiff_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uchar_max_reduce_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ushort_max_reduce_nb(shmem_team_t team, unsigned short *dest,
    const unsigned short *source, size_t nreduce, shmemx_req_t *req);
int shmemx_uint_max_reduce_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulong_max_reduce_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulonglong_max_reduce_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nreduce, shmemx_req_t *req);
int shmemx_int8_max_reduce_nb(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_int16_max_reduce_nb(shmem_team_t team, int16_t *dest, const int16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int32_max_reduce_nb(shmem_team_t team, int32_t *dest, const int32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int64_max_reduce_nb(shmem_team_t team, int64_t *dest, const int64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint8_max_reduce_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint16_max_reduce_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint32_max_reduce_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint64_max_reduce_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_size_max_reduce_nb(shmem_team_t team, size_t *dest, const size_t *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_float_max_reduce_nb(shmem_team_t team, float *dest, const float *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_double_max_reduce_nb(shmem_team_t team, double *dest, const double *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_longdouble_max_reduce_nb(shmem_team_t team, long double *dest, const long double *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_char_min_reduce_nb(shmem_team_t team, char *dest, const char *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_schar_min_reduce_nb(shmem_team_t team, signed char *dest, const signed char *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_short_min_reduce_nb(shmem_team_t team, short *dest, const short *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_int_min_reduce_nb(shmem_team_t team, int *dest, const int *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_long_min_reduce_nb(shmem_team_t team, long *dest, const long *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_longlong_min_reduce_nb(shmem_team_t team, long long *dest, const long long *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ptrdiff_min_reduce_nb(shmem_team_t team, ptrdiff_t *dest, const ptrdiff_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uchar_min_reduce_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ushort_min_reduce_nb(shmem_team_t team, unsigned short *dest,
    const unsigned short *source, size_t nreduce, shmemx_req_t *req);
int shmemx_uint_min_reduce_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulong_min_reduce_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulonglong_min_reduce_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nreduce, shmemx_req_t *req);
int shmemx_int8_min_reduce_nb(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_int16_min_reduce_nb(shmem_team_t team, int16_t *dest, const int16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int32_min_reduce_nb(shmem_team_t team, int32_t *dest, const int32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int64_min_reduce_nb(shmem_team_t team, int64_t *dest, const int64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint8_min_reduce_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint16_min_reduce_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint32_min_reduce_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint64_min_reduce_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_size_min_reduce_nb(shmem_team_t team, size_t *dest, const size_t *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_float_min_reduce_nb(shmem_team_t team, float *dest, const float *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_double_min_reduce_nb(shmem_team_t team, double *dest, const double *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_longdouble_min_reduce_nb(shmem_team_t team, long double *dest, const long double *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_char_sum_reduce_nb(shmem_team_t team, char *dest, const char *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_schar_sum_reduce_nb(shmem_team_t team, signed char *dest, const signed char *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_short_sum_reduce_nb(shmem_team_t team, short *dest, const short *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_int_sum_reduce_nb(shmem_team_t team, int *dest, const int *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_long_sum_reduce_nb(shmem_team_t team, long *dest, const long *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_longlong_sum_reduce_nb(shmem_team_t team, long long *dest, const long long *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ptrdiff_sum_reduce_nb(shmem_team_t team, ptrdiff_t *dest, const ptrdiff_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uchar_sum_reduce_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ushort_sum_reduce_nb(shmem_team_t team, unsigned short *dest,
    const unsigned short *source, size_t nreduce, shmemx_req_t *req);
int shmemx_uint_sum_reduce_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulong_sum_reduce_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulonglong_sum_reduce_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nreduce, shmemx_req_t *req);
int shmemx_int8_sum_reduce_nb(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_int16_sum_reduce_nb(shmem_team_t team, int16_t *dest, const int16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int32_sum_reduce_nb(shmem_team_t team, int32_t *dest, const int32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int64_sum_reduce_nb(shmem_team_t team, int64_t *dest, const int64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint8_sum_reduce_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint16_sum_reduce_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint32_sum_reduce_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint64_sum_reduce_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_size_sum_reduce_nb(shmem_team_t team, size_t *dest, const size_t *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_float_sum_reduce_nb(shmem_team_t team, float *dest, const float *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_double_sum_reduce_nb(shmem_team_t team, double *dest, const double *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_longdouble_sum_reduce_nb(shmem_team_t team, long double *dest, const long double *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_complexd_sum_reduce_nb(shmem_team_t team, rushmem_complexd *dest,
    const rushmem_complexd *source, size_t nreduce, shmemx_req_t *req);
int shmemx_complexf_sum_reduce_nb(shmem_team_t team, rushmem_complexf *dest,
    const rushmem_complexf *source, size_t nreduce, shmemx_req_t *req);
int shmemx_char_prod_reduce_nb(shmem_team_t team, char *dest, const char *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_schar_prod_reduce_nb(shmem_team_t team, signed char *dest, const signed char *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_short_prod_reduce_nb(shmem_team_t team, short *dest, const short *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_int_prod_reduce_nb(shmem_team_t team, int *dest, const int *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_long_prod_reduce_nb(shmem_team_t team, long *dest, const long *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_longlong_prod_reduce_nb(shmem_team_t team, long long *dest, const long long *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ptrdiff_prod_reduce_nb(shmem_team_t team, ptrdiff_t *dest, const ptrdiff_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uchar_prod_reduce_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ushort_prod_reduce_nb(shmem_team_t team, unsigned short *dest,
    const unsigned short *source, size_t nreduce, shmemx_req_t *req);
int shmemx_uint_prod_reduce_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulong_prod_reduce_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_ulonglong_prod_reduce_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nreduce, shmemx_req_t *req);
int shmemx_int8_prod_reduce_nb(shmem_team_t team, int8_t *dest, const int8_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int16_prod_reduce_nb(shmem_team_t team, int16_t *dest, const int16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int32_prod_reduce_nb(shmem_team_t team, int32_t *dest, const int32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_int64_prod_reduce_nb(shmem_team_t team, int64_t *dest, const int64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint8_prod_reduce_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint16_prod_reduce_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint32_prod_reduce_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_uint64_prod_reduce_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_size_prod_reduce_nb(shmem_team_t team, size_t *dest, const size_t *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_float_prod_reduce_nb(shmem_team_t team, float *dest, const float *source, size_t nreduce,
    shmemx_req_t *req);
int shmemx_double_prod_reduce_nb(shmem_team_t team, double *dest, const double *source,
    size_t nreduce, shmemx_req_t *req);
int shmemx_longdouble_prod_reduce_nb(shmem_team_t team, long double *dest,
    const long double *source, size_t nreduce, shmemx_req_t *req);
int shmemx_complexd_prod_reduce_nb(shmem_team_t team, rushmem_complexd *dest,
    const rushmem_complexd *source, size_t nreduce, shmemx_req_t *req);
int shmemx_complexf_prod_reduce_nb(shmem_team_t team, rushmem_complexf *dest,
    const rushmem_complexf *source, size_t nreduce, shmemx_req_t *req);
int shmemx_char_sum_inscan_nb(shmem_team_t team, char *dest, const char *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_schar_sum_inscan_nb(shmem_team_t team, signed char *dest, const signed char *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_short_sum_inscan_nb(shmem_team_t team, short *dest, const short *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int_sum_inscan_nb(shmem_team_t team, int *dest, const int *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_long_sum_inscan_nb(shmem_team_t team, long *dest, const long *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_longlong_sum_inscan_nb(shmem_team_t team, long long *dest, const long long *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ptrdiff_sum_inscan_nb(shmem_team_t team, ptrdiff_t *dest, const ptrdiff_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uchar_sum_inscan_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ushort_sum_inscan_nb(shmem_team_t team, unsigned short *dest,
    const unsigned short *source, size_t nelems, shmemx_req_t *req);
int shmemx_uint_sum_inscan_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ulong_sum_inscan_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ulonglong_sum_inscan_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nelems, shmemx_req_t *req);
int shmemx_int8_sum_inscan_nb(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int16_sum_inscan_nb(shmem_team_t team, int16_t *dest, const int16_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_int32_sum_inscan_nb(shmem_team_t team, int32_t *dest, const int32_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_int64_sum_inscan_nb(shmem_team_t team, int64_t *dest, const int64_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint8_sum_inscan_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint16_sum_inscan_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint32_sum_inscan_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint64_sum_inscan_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_size_sum_inscan_nb(shmem_team_t team, size_t *dest, const size_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_float_sum_inscan_nb(shmem_team_t team, float *dest, const float *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_double_sum_inscan_nb(shmem_team_t team, double *dest, const double *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_longdouble_sum_inscan_nb(shmem_team_t team, long double *dest, const long double *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_complexd_sum_inscan_nb(shmem_team_t team, rushmem_complexd *dest,
    const rushmem_complexd *source, size_t nelems, shmemx_req_t *req);
int shmemx_complexf_sum_inscan_nb(shmem_team_t team, rushmem_complexf *dest,
    const rushmem_complexf *source, size_t nelems, shmemx_req_t *req);
int shmemx_char_sum_exscan_nb(shmem_team_t team, char *dest, const char *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_schar_sum_exscan_nb(shmem_team_t team, signed char *dest, const signed char *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_short_sum_exscan_nb(shmem_team_t team, short *dest, const short *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int_sum_exscan_nb(shmem_team_t team, int *dest, const int *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_long_sum_exscan_nb(shmem_team_t team, long *dest, const long *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_longlong_sum_exscan_nb(shmem_team_t team, long long *dest, const long long *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ptrdiff_sum_exscan_nb(shmem_team_t team, ptrdiff_t *dest, const ptrdiff_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uchar_sum_exscan_nb(shmem_team_t team, unsigned char *dest, const unsigned char *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ushort_sum_exscan_nb(shmem_team_t team, unsigned short *dest,
    const unsigned short *source, size_t nelems, shmemx_req_t *req);
int shmemx_uint_sum_exscan_nb(shmem_team_t team, unsigned int *dest, const unsigned int *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ulong_sum_exscan_nb(shmem_team_t team, unsigned long *dest, const unsigned long *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_ulonglong_sum_exscan_nb(shmem_team_t team, unsigned long long *dest,
    const unsigned long long *source, size_t nelems, shmemx_req_t *req);
int shmemx_int8_sum_exscan_nb(shmem_team_t team, int8_t *dest, const int8_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_int16_sum_exscan_nb(shmem_team_t team, int16_t *dest, const int16_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_int32_sum_exscan_nb(shmem_team_t team, int32_t *dest, const int32_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_int64_sum_exscan_nb(shmem_team_t team, int64_t *dest, const int64_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint8_sum_exscan_nb(shmem_team_t team, uint8_t *dest, const uint8_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint16_sum_exscan_nb(shmem_team_t team, uint16_t *dest, const uint16_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint32_sum_exscan_nb(shmem_team_t team, uint32_t *dest, const uint32_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_uint64_sum_exscan_nb(shmem_team_t team, uint64_t *dest, const uint64_t *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_size_sum_exscan_nb(shmem_team_t team, size_t *dest, const size_t *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_float_sum_exscan_nb(shmem_team_t team, float *dest, const float *source, size_t nelems,
    shmemx_req_t *req);
int shmemx_double_sum_exscan_nb(shmem_team_t team, double *dest, const double *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_longdouble_sum_exscan_nb(shmem_team_t team, long double *dest, const long double *source,
    size_t nelems, shmemx_req_t *req);
int shmemx_complexd_sum_exscan_nb(shmem_team_t team, rushmem_complexd *dest,
    const rushmem_complexd *source, size_t nelems, shmemx_req_t *req);
int shmemx_complexf_sum_exscan_nb(shmem_team_t team, rushmem_complexf *dest,
    const rushmem_complexf *source, size_t nelems, shmemx_req_t *req);
int shmemx_req_test(shmemx_req_t *req, int *flag);
int shmemx_req_wait(shmemx_req_t *req);

#if defined(__cplusplus)
}
#endif

/* The type-generic interface of C11. */
#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L

#define shmemx_alltoall_nb(...) \
    RUSHMEM_RMA(shmemx_, _alltoall_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_and_reduce_nb(...) \
    RUSHMEM_BITWISE_REDUCE(shmemx_, _and_reduce_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_broadcast_nb(...) \
    RUSHMEM_RMA(shmemx_, _broadcast_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_collect_nb(...) \
    RUSHMEM_RMA(shmemx_, _collect_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_fcollect_nb(...) \
    RUSHMEM_RMA(shmemx_, _fcollect_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_ibget(...) \
    RUSHMEM_TYPE_ON_CTX(RUSHMEM_RMA, shmemx_, _ibget, __VA_ARGS__)(__VA_ARGS__)
#define shmemx_ibput(...) \
    RUSHMEM_TYPE_ON_CTX(RUSHMEM_RMA, shmemx_, _ibput, __VA_ARGS__)(__VA_ARGS__)
#define shmemx_max_reduce_nb(...) \
    RUSHMEM_ORDERED_REDUCE(shmemx_, _max_reduce_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_min_reduce_nb(...) \
    RUSHMEM_ORDERED_REDUCE(shmemx_, _min_reduce_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_or_reduce_nb(...) \
    RUSHMEM_BITWISE_REDUCE(shmemx_, _or_reduce_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_prod_reduce_nb(...) \
    RUSHMEM_ARITHMETIC_REDUCE(shmemx_, _prod_reduce_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_signal_add(...) \
    RUSHMEM_ON_CTX(shmemx_ctx_signal_add, shmemx_signal_add, __VA_ARGS__)(__VA_ARGS__)
#define shmemx_signal_set(...) \
    RUSHMEM_ON_CTX(shmemx_ctx_signal_set, shmemx_signal_set, __VA_ARGS__)(__VA_ARGS__)
#define shmemx_sum_exscan(...) \
    RUSHMEM_ARITHMETIC_REDUCE(shmemx_, _sum_exscan, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_sum_exscan_nb(...) \
    RUSHMEM_ARITHMETIC_REDUCE(shmemx_, _sum_exscan_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_sum_inscan(...) \
    RUSHMEM_ARITHMETIC_REDUCE(shmemx_, _sum_inscan, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_sum_inscan_nb(...) \
    RUSHMEM_ARITHMETIC_REDUCE(shmemx_, _sum_inscan_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_sum_reduce_nb(...) \
    RUSHMEM_ARITHMETIC_REDUCE(shmemx_, _sum_reduce_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define shmemx_xor_reduce_nb(...) \
    RUSHMEM_BITWISE_REDUCE(shmemx_, _xor_reduce_nb, RUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)

#endif /* C11 */

/* The same in C++, by overloads; complex numbers have none. */
#if defined(__cplusplus)
extern "C++" {

inline void shmemx_signal_add(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)
    { return shmemx_ctx_signal_add(ctx, sig_addr, signal, pe); }
inline void shmemx_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)
    { return shmemx_ctx_signal_set(ctx, sig_addr, signal, pe); }

#define RUSHMEM_RMA_OVERLOADS(T, N) \
    inline int shmemx_alltoall_nb(shmem_team_t team, T *dest, const T *source, size_t nelems, shmemx_req_t *req) \
        { return shmemx_##N##_alltoall_nb(team, dest, source, nelems, req); } \
    inline int shmemx_broadcast_nb(shmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root, shmemx_req_t *req) \
        { return shmemx_##N##_broadcast_nb(team, dest, source, nelems, PE_root, req); } \
    inline int shmemx_collect_nb(shmem_team_t team, T *dest, const T *source, size_t nelems, shmemx_req_t *req) \
        { return shmemx_##N##_collect_nb(team, dest, source, nelems, req); } \
    inline int shmemx_fcollect_nb(shmem_team_t team, T *dest, const T *source, size_t nelems, shmemx_req_t *req) \
        { return shmemx_##N##_fcollect_nb(team, dest, source, nelems, req); } \
    inline void shmemx_ibget(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) \
        { return shmemx_##N##_ibget(dest, source, dst, sst, bsize, nblocks, pe); } \
    inline void shmemx_ibget(shmem_ctx_t ctx, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) \
        { return shmemx_ctx_##N##_ibget(ctx, dest, source, dst, sst, bsize, nblocks, pe); } \
    inline void shmemx_ibput(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) \
        { return shmemx_##N##_ibput(dest, source, dst, sst, bsize, nblocks, pe); } \
    inline void shmemx_ibput(shmem_ctx_t ctx, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) \
        { return shmemx_ctx_##N##_ibput(ctx, dest, source, dst, sst, bsize, nblocks, pe); }
RUSHMEM_RMA_OVERLOADS(float, float)
RUSHMEM_RMA_OVERLOADS(double, double)
RUSHMEM_RMA_OVERLOADS(long double, longdouble)
RUSHMEM_RMA_OVERLOADS(char, char)
RUSHMEM_RMA_OVERLOADS(signed char, schar)
RUSHMEM_RMA_OVERLOADS(short, short)
RUSHMEM_RMA_OVERLOADS(int, int)
RUSHMEM_RMA_OVERLOADS(long, long)
RUSHMEM_RMA_OVERLOADS(long long, longlong)
RUSHMEM_RMA_OVERLOADS(unsigned char, uchar)
RUSHMEM_RMA_OVERLOADS(unsigned short, ushort)
RUSHMEM_RMA_OVERLOADS(unsigned int, uint)
RUSHMEM_RMA_OVERLOADS(unsigned long, ulong)
RUSHMEM_RMA_OVERLOADS(unsigned long long, ulonglong)
#undef RUSHMEM_RMA_OVERLOADS

#define RUSHMEM_BITWISE_REDUCE_OVERLOADS(T, N) \
    inline int shmemx_and_reduce_nb(shmem_team_t team, T *dest, const T *source, size_t nreduce, shmemx_req_t *req) \
        { return shmemx_##N##_and_reduce_nb(team, dest, source, nreduce, req); } \
    inline int shmemx_or_reduce_nb(shmem_team_t team, T *dest, const T *source, size_t nreduce, shmemx_req_t *req) \
        { return shmemx_##N##_or_reduce_nb(team, dest, source, nreduce, req); } \
    inline int shmemx_xor_reduce_nb(shmem_team_t team, T *dest, const T *source, size_t nreduce, shmemx_req_t *req) \
        { return shmemx_##N##_xor_reduce_nb(team, dest, source, nreduce, req); }
RUSHMEM_BITWISE_REDUCE_OVERLOADS(unsigned char, uchar)
RUSHMEM_BITWISE_REDUCE_OVERLOADS(unsigned short, ushort)
RUSHMEM_BITWISE_REDUCE_OVERLOADS(unsigned int, uint)
RUSHMEM_BITWISE_REDUCE_OVERLOADS(unsigned long, ulong)
RUSHMEM_BITWISE_REDUCE_OVERLOADS(unsigned long long, ulonglong)
RUSHMEM_BITWISE_REDUCE_OVERLOADS(int8_t, int8)
RUSHMEM_BITWISE_REDUCE_OVERLOADS(int16_t, int16)
RUSHMEM_BITWISE_REDUCE_OVERLOADS(int32_t, int32)
RUSHMEM_BITWISE_REDUCE_OVERLOADS(int64_t, int64)
#undef RUSHMEM_BITWISE_REDUCE_OVERLOADS

#define RUSHMEM_ORDERED_REDUCE_OVERLOADS(T, N) \
    inline int shmemx_max_reduce_nb(shmem_team_t team, T *dest, const T *source, size_t nreduce, shmemx_req_t *req) \
        { return shmemx_##N##_max_reduce_nb(team, dest, source, nreduce, req); } \
    inline int shmemx_min_reduce_nb(shmem_team_t team, T *dest, const T *source, size_t nreduce, shmemx_req_t *req) \
        { return shmemx_##N##_min_reduce_nb(team, dest, source, nreduce, req); }
RUSHMEM_ORDERED_REDUCE_OVERLOADS(char, char)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(signed char, schar)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(short, short)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(int, int)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(long, long)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(long long, longlong)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(unsigned char, uchar)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(unsigned short, ushort)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(unsigned int, uint)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(unsigned long, ulong)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(unsigned long long, ulonglong)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(float, float)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(double, double)
RUSHMEM_ORDERED_REDUCE_OVERLOADS(long double, longdouble)
#undef RUSHMEM_ORDERED_REDUCE_OVERLOADS

#define RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(T, N) \
    inline int shmemx_prod_reduce_nb(shmem_team_t team, T *dest, const T *source, size_t nreduce, shmemx_req_t *req) \
        { return shmemx_##N##_prod_reduce_nb(team, dest, source, nreduce, req); } \
    inline int shmemx_sum_exscan(shmem_team_t team, T *dest, const T *source, size_t nelems) \
        { return shmemx_##N##_sum_exscan(team, dest, source, nelems); } \
    inline int shmemx_sum_exscan_nb(shmem_team_t team, T *dest, const T *source, size_t nelems, shmemx_req_t *req) \
        { return shmemx_##N##_sum_exscan_nb(team, dest, source, nelems, req); } \
    inline int shmemx_sum_inscan(shmem_team_t team, T *dest, const T *source, size_t nelems) \
        { return shmemx_##N##_sum_inscan(team, dest, source, nelems); } \
    inline int shmemx_sum_inscan_nb(shmem_team_t team, T *dest, const T *source, size_t nelems, shmemx_req_t *req) \
        { return shmemx_##N##_sum_inscan_nb(team, dest, source, nelems, req); } \
    inline int shmemx_sum_reduce_nb(shmem_team_t team, T *dest, const T *source, size_t nreduce, shmemx_req_t *req) \
        { return shmemx_##N##_sum_reduce_nb(team, dest, source, nreduce, req); }
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(char, char)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(signed char, schar)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(short, short)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(int, int)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(long, long)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(long long, longlong)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(unsigned char, uchar)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(unsigned short, ushort)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(unsigned int, uint)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(unsigned long, ulong)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(unsigned long long, ulonglong)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(float, float)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(double, double)
RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS(long double, longdouble)
#undef RUSHMEM_ARITHMETIC_REDUCE_OVERLOADS

}
#endif

#endif /* RUSHMEM_SHMEMX_H */
