! Reductions of every type and operator, over several active sets, with two pairs of pWrk and pSync in turn
! and in place.
program fortran_reductions
  implicit none
  include "shmem.fh"
  integer, parameter :: count = 5
  integer :: me, n, failures, calls
  integer :: psync(shmem_reduce_sync_size, 0:1)
  integer :: barrier_sync(shmem_barrier_sync_size)
  integer(kind=8) :: source_at, dest_at, work_at(0:1)
  pointer (psync_at, psync), (barrier_at, barrier_sync)

  call check_begin()
  psync_at = block(size(psync))
  barrier_at = block(size(barrier_sync))
  psync = shmem_sync_value
  barrier_sync = shmem_sync_value
  source_at = block(4 * count)
  dest_at = block(4 * (count + 1))
  work_at(0) = block(4 * max(count / 2 + 1, shmem_reduce_min_wrkdata_size))
  work_at(1) = block(4 * max(count / 2 + 1, shmem_reduce_min_wrkdata_size))
  calls = 0
  call shmem_barrier_all()

  call over_set(0, 0, n)
  if (n > 1) call over_set(1, 0, n - 1)
  if (n > 2) call over_set(0, 1, (n + 1) / 2)
  if (n > 5) call over_set(1, 2, (n + 2) / 4)
  call check_end()
contains
  include "fortran_check.inc"

  subroutine over_set(start, log_stride, set_size)
    integer, intent(in) :: start, log_stride, set_size
    integer :: stride, index
    stride = 2**log_stride
    index = (me - start) / stride
    if (me >= start .and. mod(me - start, stride) == 0 .and. index < set_size) then
      call integers_of_2(start, log_stride, set_size)
      call integers_of_4(start, log_stride, set_size)
      call integers_of_8(start, log_stride, set_size)
      call reals_of_4(start, log_stride, set_size)
      call reals_of_8(start, log_stride, set_size)
      call reals_of_16(start, log_stride, set_size)
      call complexes_of_4(start, log_stride, set_size)
      call complexes_of_8(start, log_stride, set_size)
      call maxima_of_complexes(start, log_stride, set_size)
      call check(all(psync == shmem_sync_value), 62, "pSync is as it was")
    end if
    call shmem_barrier_all()
  end subroutine

  ! The pair for the next call: a barrier of the set lies between two, so that dest is ready on all PEs.
  function next_pair(start, log_stride, set_size)
    integer, intent(in) :: start, log_stride, set_size
    integer :: next_pair
    call shmem_barrier(start, log_stride, set_size, barrier_sync)
    calls = calls + 1
    next_pair = mod(calls, 2)
  end function

#define TEST integers_of_2
#define TYPE_OF integer(kind=2)
#define VALUE(pe, i) int(mod(37 * (pe) + 11 * (i), 1000), 2)
#define FACTOR(pe, i) int(merge(2, 1, mod((pe) + (i), 3) == 0), 2)
#define BITWISE
#define AND SHMEM_INT2_AND_TO_ALL
#define OR SHMEM_INT2_OR_TO_ALL
#define XOR SHMEM_INT2_XOR_TO_ALL
#define ORDERED
#define MAX SHMEM_INT2_MAX_TO_ALL
#define MIN SHMEM_INT2_MIN_TO_ALL
#define SUM SHMEM_INT2_SUM_TO_ALL
#define PROD SHMEM_INT2_PROD_TO_ALL
#include "fortran_reductions_of.inc"

#define TEST integers_of_4
#define TYPE_OF integer(kind=4)
#define VALUE(pe, i) int(mod(37 * (pe) + 11 * (i), 1000), 4)
#define FACTOR(pe, i) int(merge(2, 1, mod((pe) + (i), 3) == 0), 4)
#define BITWISE
#define AND SHMEM_INT4_AND_TO_ALL
#define OR SHMEM_INT4_OR_TO_ALL
#define XOR SHMEM_INT4_XOR_TO_ALL
#define ORDERED
#define MAX SHMEM_INT4_MAX_TO_ALL
#define MIN SHMEM_INT4_MIN_TO_ALL
#define SUM SHMEM_INT4_SUM_TO_ALL
#define PROD SHMEM_INT4_PROD_TO_ALL
#include "fortran_reductions_of.inc"

#define TEST integers_of_8
#define TYPE_OF integer(kind=8)
#define VALUE(pe, i) int(mod(37 * (pe) + 11 * (i), 1000), 8)
#define FACTOR(pe, i) int(merge(2, 1, mod((pe) + (i), 3) == 0), 8)
#define BITWISE
#define AND SHMEM_INT8_AND_TO_ALL
#define OR SHMEM_INT8_OR_TO_ALL
#define XOR SHMEM_INT8_XOR_TO_ALL
#define ORDERED
#define MAX SHMEM_INT8_MAX_TO_ALL
#define MIN SHMEM_INT8_MIN_TO_ALL
#define SUM SHMEM_INT8_SUM_TO_ALL
#define PROD SHMEM_INT8_PROD_TO_ALL
#include "fortran_reductions_of.inc"

#define TEST reals_of_4
#define TYPE_OF real(kind=4)
#define VALUE(pe, i) real(0.25 * mod(7 * (pe) + (i), 5) - 0.5 * (i), 4)
#define FACTOR(pe, i) real(merge(2, 1, mod((pe) + (i), 3) == 0), 4)
#define ORDERED
#define MAX SHMEM_REAL4_MAX_TO_ALL
#define MIN SHMEM_REAL4_MIN_TO_ALL
#define SUM SHMEM_REAL4_SUM_TO_ALL
#define PROD SHMEM_REAL4_PROD_TO_ALL
#include "fortran_reductions_of.inc"

#define TEST reals_of_8
#define TYPE_OF real(kind=8)
#define VALUE(pe, i) real(0.25 * mod(7 * (pe) + (i), 5) - 0.5 * (i), 8)
#define FACTOR(pe, i) real(merge(2, 1, mod((pe) + (i), 3) == 0), 8)
#define ORDERED
#define MAX SHMEM_REAL8_MAX_TO_ALL
#define MIN SHMEM_REAL8_MIN_TO_ALL
#define SUM SHMEM_REAL8_SUM_TO_ALL
#define PROD SHMEM_REAL8_PROD_TO_ALL
#include "fortran_reductions_of.inc"

#define TEST reals_of_16
#define TYPE_OF real(kind=16)
! All 113 bits of its numbers count.
#define VALUE(pe, i) ((pe) + (i) + (pe + 1) / 2.0_16**100)
#define FACTOR(pe, i) merge(1 + 1 / 2.0_16**100, -1.0_16, (pe) == (i))
#define ORDERED
#define MAX SHMEM_REAL16_MAX_TO_ALL
#define MIN SHMEM_REAL16_MIN_TO_ALL
#define SUM SHMEM_REAL16_SUM_TO_ALL
#define PROD SHMEM_REAL16_PROD_TO_ALL
#include "fortran_reductions_of.inc"

#define TEST complexes_of_4
#define TYPE_OF complex(kind=4)
#define VALUE(pe, i) cmplx(0.5 * (pe) - (i), (i) + 0.25 * (pe), 4)
#define FACTOR(pe, i) cmplx(0, merge(2, -1, mod((pe) + (i), 3) == 0), 4)
#define SUM SHMEM_COMP4_SUM_TO_ALL
#define PROD SHMEM_COMP4_PROD_TO_ALL
#include "fortran_reductions_of.inc"

#define TEST complexes_of_8
#define TYPE_OF complex(kind=8)
#define VALUE(pe, i) cmplx(0.5 * (pe) - (i), (i) + 0.25 * (pe), 8)
#define FACTOR(pe, i) cmplx(0, merge(2, -1, mod((pe) + (i), 3) == 0), 8)
#define SUM SHMEM_COMP8_SUM_TO_ALL
#define PROD SHMEM_COMP8_PROD_TO_ALL
#include "fortran_reductions_of.inc"

  ! An order that no standard gives: by real parts, then by imaginary parts.
  subroutine maxima_of_complexes(start, log_stride, set_size)
    integer, intent(in) :: start, log_stride, set_size
    complex(kind=8) :: source(count), dest(count), most
    pointer (source_here, source), (dest_here, dest)
    integer :: i, last, pair
    source_here = source_at
    dest_here = dest_at
    do i = 1, count
      source(i) = cmplx(i / 3, me - i, 8)
    end do
    source(1) = cmplx(-me, me, 8)
    pair = next_pair(start, log_stride, set_size)
    call SHMEM_COMP8_MAX_TO_ALL(dest, source, count, start, log_stride, set_size, &
                                work_at, psync(1, pair))
    last = start + (set_size - 1) * 2**log_stride
    do i = 2, count
      most = cmplx(i / 3, last - i, 8)
      call check(dest(i) == most, 86, "SHMEM_COMP8_MAX_TO_ALL: equal real parts")
    end do
    call check(dest(1) == cmplx(-start, start, 8), 86, "SHMEM_COMP8_MAX_TO_ALL: real parts come first")
  end subroutine
end program
