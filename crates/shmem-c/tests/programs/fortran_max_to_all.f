C     The maximum reductions as old programs call them: in fixed form, with arguments typed implicitly or
C     by the include file; with no elements, and then with one.
      PROGRAM MAXIMA
      INCLUDE "mpp/shmem.fh"
      INTEGER PSYNC(SHMEM_REDUCE_SYNC_SIZE), PES, FIRST
      INTEGER ME, N, FAILURES
      REAL*16 INTO(1), OF(1), WORK(SHMEM_REDUCE_MIN_WRKDATA_SIZE)
      COMMON /SHARED/ INTO, OF, WORK, PSYNC
      DATA PSYNC /SHMEM_REDUCE_SYNC_SIZE*SHMEM_SYNC_VALUE/

      CALL START_PES(0)
      CALL CHECK_START()
      FIRST = 0
      LOGSTEP = 0
      NONE = 0
      PES = NUM_PES()
      INTO(1) = -1
      OF(1) = ME + 0.25
      CALL SHMEM_BARRIER_ALL()
      CALL SHMEM_INT4_MAX_TO_ALL(INTO, OF, NONE,
     &  FIRST, LOGSTEP, PES, WORK, PSYNC)
      CALL SHMEM_BARRIER_ALL()
      CALL SHMEM_INT8_MAX_TO_ALL(INTO, OF, NONE,
     &  FIRST, LOGSTEP, PES, WORK, PSYNC)
      CALL SHMEM_BARRIER_ALL()
      CALL SHMEM_REAL4_MAX_TO_ALL(INTO, OF, NONE,
     &  FIRST, LOGSTEP, PES, WORK, PSYNC)
      CALL SHMEM_BARRIER_ALL()
      CALL SHMEM_REAL8_MAX_TO_ALL(INTO, OF, NONE,
     &  FIRST, LOGSTEP, PES, WORK, PSYNC)
      CALL SHMEM_BARRIER_ALL()
      CALL SHMEM_REAL16_MAX_TO_ALL(INTO, OF, NONE,
     &  FIRST, LOGSTEP, PES, WORK, PSYNC)
      CALL CHECK(INTO(1) .EQ. -1, 86, "a reduction of no elements")
      CALL SHMEM_BARRIER_ALL()
      CALL SHMEM_REAL16_MAX_TO_ALL(INTO, OF, 1,
     &  FIRST, LOGSTEP, PES, WORK, PSYNC)
      CALL CHECK(INTO(1) .EQ. N - 0.75, 86, "the largest")
      CALL CHECK_VERDICT(CHECK_AGREE())
      CONTAINS
      INCLUDE "fortran_check.inc"
      END
