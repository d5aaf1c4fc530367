! Atomics of every type, from all PEs at once.
program fortran_amo
  implicit none
  include "shmem.fh"
  integer :: me, n, failures
  call check_begin()
  call integers_of_4()
  call integers_of_8()
  call reals_of_4()
  call reals_of_8()
  call default_integers()
  call check_end()
contains
  include "fortran_check.inc"

#define TEST integers_of_4
#define KIND_OF 4
#define ADD SHMEM_INT4_ADD
#define FADD SHMEM_INT4_FADD
#define INC SHMEM_INT4_INC
#define FINC SHMEM_INT4_FINC
#define CSWAP SHMEM_INT4_CSWAP
#define SWAP SHMEM_INT4_SWAP
#define SET SHMEM_INT4_SET
#define FETCH SHMEM_INT4_FETCH
#include "fortran_amo_integer.inc"

#define TEST integers_of_8
#define KIND_OF 8
#define ADD SHMEM_INT8_ADD
#define FADD SHMEM_INT8_FADD
#define INC SHMEM_INT8_INC
#define FINC SHMEM_INT8_FINC
#define CSWAP SHMEM_INT8_CSWAP
#define SWAP SHMEM_INT8_SWAP
#define SET SHMEM_INT8_SET
#define FETCH SHMEM_INT8_FETCH
#include "fortran_amo_integer.inc"

#define TEST reals_of_4
#define KIND_OF 4
#define SWAP SHMEM_REAL4_SWAP
#define SET SHMEM_REAL4_SET
#define FETCH SHMEM_REAL4_FETCH
#define ADD SHMEMX_REAL4_ADD
#define FADD SHMEMX_REAL4_FADD
#include "fortran_amo_real.inc"

#define TEST reals_of_8
#define KIND_OF 8
#define SWAP SHMEM_REAL8_SWAP
#define SET SHMEM_REAL8_SET
#define FETCH SHMEM_REAL8_FETCH
#define ADD SHMEMX_REAL8_ADD
#define FADD SHMEMX_REAL8_FADD
#include "fortran_amo_real.inc"

  ! SHMEM_SWAP is of default INTEGER: its neighbors stay as they are.
  subroutine default_integers()
    integer, external :: shmem_swap
    integer :: words(3), old
    pointer (words_at, words)
    words_at = block(3)
    words = (/ -7, me, -8 /)
    call shmem_barrier_all()
    old = shmem_swap(words(2), 100 + me, mod(me + 1, n))
    call check(old == mod(me + 1, n), 35, "SHMEM_SWAP")
    call shmem_barrier_all()
    call check(words(2) == 100 + mod(me + n - 1, n), 35, "what SHMEM_SWAP left")
    call check(words(1) == -7 .and. words(3) == -8, 35, "4 bytes are swapped")
    call return_block(words_at)
  end subroutine
end program
