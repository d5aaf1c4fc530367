! Collectives that move elements, over several active sets, with elements of 4 and 8 bytes.
program fortran_collectives
  implicit none
  include "shmem.fh"
  integer, parameter :: count = 3, syncs = 4
  integer :: me, n, failures, calls
  integer :: psync(shmem_collect_sync_size + 1, 0:syncs - 1)
  integer :: barrier_sync(shmem_barrier_sync_size)
  integer(kind=8) :: source_at, dest_at
  pointer (psync_at, psync), (barrier_at, barrier_sync)

  call check_begin()
  call check(shmem_bcast_sync_size <= shmem_collect_sync_size, 63, "one pSync suits all")
  call check(shmem_alltoall_sync_size <= shmem_collect_sync_size, 63, "one pSync suits all")
  call check(shmem_alltoalls_sync_size <= shmem_collect_sync_size, 63, "one pSync suits all")
  psync_at = block(size(psync))
  barrier_at = block(size(barrier_sync))
  ! Not all PEs are in every set, so what sets work on is allocated before.
  source_at = block(2 * n * (n + 3 * count))
  dest_at = block(2 * n * (n + 3 * count))
  psync = shmem_sync_value
  barrier_sync = shmem_sync_value
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
      call moves_bytes_4(start, log_stride, set_size, index)
      call moves_bytes_8(start, log_stride, set_size, index)
      call moves_bits_32(start, log_stride, set_size, index)
      call moves_bits_64(start, log_stride, set_size, index)
      call exchanges_32(start, log_stride, set_size, index)
      call exchanges_64(start, log_stride, set_size, index)
      call check(all(psync == shmem_sync_value), 62, "pSync is as it was")
      call check(all(barrier_sync == shmem_sync_value), 62, "pSync of a barrier is as it was")
    end if
    call shmem_barrier_all()
  end subroutine

  ! The pSync for the next call: before one is used again a barrier of the set lies between.
  function next_sync(start, log_stride, set_size)
    integer, intent(in) :: start, log_stride, set_size
    integer :: next_sync
    call shmem_barrier(start, log_stride, set_size, barrier_sync)
    calls = calls + 1
    next_sync = mod(calls, syncs)
  end function

  ! Element i of a PE.
  pure integer function element(pe, i)
    integer, intent(in) :: pe, i
    element = 1000 * pe + i
  end function

#define TEST moves_bytes_4
#define TYPE_OF integer(kind=4)
#define BROADCAST SHMEM_BROADCAST4
#define COLLECT SHMEM_COLLECT4
#define FCOLLECT SHMEM_FCOLLECT4
#include "fortran_collectives_moves.inc"

#define TEST moves_bytes_8
#define TYPE_OF integer(kind=8)
#define BROADCAST SHMEM_BROADCAST8
#define COLLECT SHMEM_COLLECT8
#define FCOLLECT SHMEM_FCOLLECT8
#include "fortran_collectives_moves.inc"

#define TEST moves_bits_32
#define TYPE_OF real(kind=4)
#define BROADCAST SHMEM_BROADCAST32
#define COLLECT SHMEM_COLLECT32
#define FCOLLECT SHMEM_FCOLLECT32
#include "fortran_collectives_moves.inc"

#define TEST moves_bits_64
#define TYPE_OF real(kind=8)
#define BROADCAST SHMEM_BROADCAST64
#define COLLECT SHMEM_COLLECT64
#define FCOLLECT SHMEM_FCOLLECT64
#include "fortran_collectives_moves.inc"

#define TEST exchanges_32
#define TYPE_OF real(kind=4)
#define ALLTOALL SHMEM_ALLTOALL32
#define ALLTOALLS SHMEM_ALLTOALLS32
#include "fortran_collectives_exchanges.inc"

#define TEST exchanges_64
#define TYPE_OF integer(kind=8)
#define ALLTOALL SHMEM_ALLTOALL64
#define ALLTOALLS SHMEM_ALLTOALLS64
#include "fortran_collectives_exchanges.inc"

end program
