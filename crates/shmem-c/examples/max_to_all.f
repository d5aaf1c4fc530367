C     The largest of the values that the even PEs have, with a static pSync as in the manual of
C     shmem_max_to_all.
C
C       oshfort max_to_all.f -o max_to_all && oshrun -n 8 ./max_to_all
      PROGRAM LARGEST
      IMPLICIT NONE
      INCLUDE "shmem.fh"
      INTEGER NR
      PARAMETER (NR = 1)
      INTEGER SHMEM_MY_PE, SHMEM_N_PES
      INTEGER EVEN
      INTEGER PSYNC(SHMEM_REDUCE_SYNC_SIZE)
      DATA PSYNC /SHMEM_REDUCE_SYNC_SIZE*SHMEM_SYNC_VALUE/
      REAL*8 FOO, FOOMAX
      REAL*8 PWRK(MAX(NR/2+1, SHMEM_REDUCE_MIN_WRKDATA_SIZE))
      COMMON /COM/ FOO, FOOMAX, PWRK

      CALL SHMEM_INIT()
      FOO = SIN(1D0 * SHMEM_MY_PE())
      CALL SHMEM_BARRIER_ALL()
      IF (MOD(SHMEM_MY_PE(), 2) .EQ. 0) THEN
        EVEN = (SHMEM_N_PES() + 1) / 2
C       From PE 0 on, a stride of 2 to the 1.
        CALL SHMEM_REAL8_MAX_TO_ALL(FOOMAX, FOO, NR, 0, 1, EVEN,
     &    PWRK, PSYNC)
        PRINT *, 'Result on PE ', SHMEM_MY_PE(), ' is ', FOOMAX
      ENDIF
      CALL SHMEM_FINALIZE()
      END
