C     The names from before OpenSHMEM 1.2, in fixed form: START_PES, no finalize, and the include file in
C     its old directory.
      PROGRAM OLD
      IMPLICIT NONE
      INCLUDE "mpp/shmem.fh"
      INCLUDE "mpp/shmemx.fh"
      INTEGER ME, N, FAILURES, CODE, MY_PE, NUM_PES
      REAL*8 WORD(2), MINE
      POINTER (AT, WORD)

      CALL START_PES(0)
      CALL START_PES(NUM_PES())
      CALL CHECK_START()
      CALL CHECK(ME .EQ. MY_PE(), 74, "MY_PE")
      CALL CHECK(N .EQ. NUM_PES(), 74, "NUM_PES")
      CALL SHPALLOC(AT, 4, CODE, 1)
      WORD(2) = -1
      CALL SHMEM_BARRIER_ALL()
      MINE = ME + 0.5D0
C     SHMEM_PUT and SHMEM_GET move 8-byte elements.
      CALL SHMEM_PUT(WORD, MINE, 1, MOD(ME + 1, N))
      CALL SHMEM_BARRIER_ALL()
      MINE = MOD(ME + N - 1, N) + 0.5D0
      CALL CHECK(WORD(1) .EQ. MINE, 31, "SHMEM_PUT")
      CALL CHECK(WORD(2) .EQ. -1, 31, "SHMEM_PUT put one element")
      CALL SHMEM_GET(WORD(2), WORD, 1, MOD(ME + 1, N))
      CALL CHECK(WORD(2) .EQ. ME + 0.5D0, 31, "SHMEM_GET")
      CALL SHMEM_BARRIER_ALL()
      CALL SHPDEALLC(AT, CODE, 1)
      CALL CHECK_VERDICT(CHECK_AGREE())
      CONTAINS
      INCLUDE "fortran_check.inc"
      END
