! Waits on a flag that the left neighbor sets after its data, by every comparison.
program fortran_wait
  implicit none
  include "shmem.fh"
  integer :: me, n, failures
  call check_begin()
  call default_integers()
  call integers_of_4()
  call integers_of_8()
  call check_end()
contains
  include "fortran_check.inc"

#define TEST default_integers
#define KIND_OF 4
#define WAIT SHMEM_WAIT
#define WAIT_UNTIL SHMEM_WAIT_UNTIL
#define PUT SHMEM_INTEGER_PUT
#include "fortran_wait_of.inc"

#define TEST integers_of_4
#define KIND_OF 4
#define WAIT SHMEM_INT4_WAIT
#define WAIT_UNTIL SHMEM_INT4_WAIT_UNTIL
#define PUT SHMEM_PUT4
#include "fortran_wait_of.inc"

#define TEST integers_of_8
#define KIND_OF 8
#define WAIT SHMEM_INT8_WAIT
#define WAIT_UNTIL SHMEM_INT8_WAIT_UNTIL
#define PUT SHMEM_PUT8
#include "fortran_wait_of.inc"

end program
