! SHPALLOC, SHPDEALLC and SHPCLMOVE: lengths in words of 4 bytes, error codes, and contents kept when a
! block moves. SHMEMX_RELEASE and SHMEMX_RECLAIM. An array of the program that becomes symmetric.
program fortran_memory
  implicit none
  include "shmem.fh"
  integer, parameter :: count = 1000
  integer :: me, n, failures, code, i
  integer(kind=8) :: first, second, outside, old, total, used, with, room
  integer(kind=8), external :: shmemx_reclaim
  integer, external :: shmemx_buffer_register, shmemx_buffer_unregister
  integer, allocatable, target :: own(:)
  integer :: a(*), b(*)
  pointer (first, a), (second, b)

  call check_begin()

  call shmemx_heap_info(total, used, room)
  call check(used < total .and. room > 4 * count, 65, "SHMEMX_HEAP_INFO")
  call shpalloc(first, count, code, 0)
  call shmemx_heap_info(total, with, room)
  call check(with == used + 4 * count, 65, "what SHMEMX_HEAP_INFO says of a block")
  call check(code == 0 .and. first /= 0, 65, "SHPALLOC")
  call shpalloc(second, count, code, 0)
  call check(code == 0, 65, "a second SHPALLOC")
  call check(abs(second - first) >= 4 * count, 65, "the length is in words of 4 bytes")
  do i = 1, count
    a(i) = me * count + i
    b(i) = -1
  end do
  call shmem_barrier_all()
  call shmem_put4(b, a, count, mod(me + 1, n))
  call shmem_barrier_all()
  do i = 1, count
    call check(b(i) == mod(me + n - 1, n) * count + i, 65, "the whole block is symmetric")
  end do

  ! Growing past the second block moves the first one, shrinking does not.
  old = first
  call shpclmove(first, 3 * count, code, 0)
  call check(code == merge(0, 1, first == old), 65, "the status of SHPCLMOVE says whether it moved")
  do i = 1, count
    call check(a(i) == me * count + i, 65, "the contents are as they were")
  end do
  old = first
  call shpclmove(first, count / 2, code, 0)
  call check(code == 0 .and. first == old, 65, "a block that shrinks stays where it is")

  old = first
  call shpalloc(first, 0, code, 0)
  call check(code == -1 .and. first == 0, 65, "no block of no words")
  call shpalloc(first, -5, code, 0)
  call check(code == -1, 65, "a negative length")
  call shpalloc(first, huge(code), code, 0)
  call check(code == -2, 65, "more than there is")
  first = old
  call shpclmove(first, 0, code, 0)
  call check(code == -1 .and. first == old, 65, "SHPCLMOVE to no words")
  call shpclmove(first, huge(code), code, 0)
  call check(code == -2 .and. first == old, 65, "SHPCLMOVE to more than there is")

  outside = loc(outside)
  call shpdeallc(outside, code, 0)
  call check(code == -3, 65, "an address outside of the heap")
  call shpclmove(outside, 4, code, 0)
  call check(code == -3, 65, "SHPCLMOVE of an address outside of the heap")
  outside = first + 16
  call shpdeallc(outside, code, 0)
  call check(code == -5, 65, "an address within a block")
  call shpclmove(outside, 4, code, 0)
  call check(code == -5, 65, "SHPCLMOVE of an address within a block")
  call shpdeallc(first, code, 0)
  call check(code == 0, 65, "SHPDEALLC")
  call shpdeallc(first, code, 0)
  call check(code == -4, 65, "a block that is free already")
  call shpclmove(first, 4, code, 0)
  call check(code == -4, 65, "SHPCLMOVE of a block that is free")
  call shpdealloc(second, code, 1)
  call check(code == 0, 65, "the other spelling")

  call shpalloc(first, count, code, 0)
  call check(shmemx_reclaim() == 0, 65, "SHMEMX_RECLAIM frees nothing that is in use")
  call shmemx_release(first)
  call check(shmemx_reclaim() == 4 * count, 65, "SHMEMX_RECLAIM frees what all PEs have released")

  allocate(own(count))
  own = me
  call check(shmemx_buffer_register(own, 4_8 * count) == 0, 65, "SHMEMX_BUFFER_REGISTER")
  call check(all(own == me), 65, "a registered array keeps its contents")
  call shmem_barrier_all()
  call shmem_put4(own, own(count / 2 + 1), count / 2, mod(me + 1, n))
  call shmem_barrier_all()
  call check(all(own(1:count / 2) == mod(me + n - 1, n)), 65, "a registered array is symmetric")
  call check(shmemx_buffer_unregister(own) == 0, 65, "SHMEMX_BUFFER_UNREGISTER")
  call check(shmemx_buffer_unregister(own) /= 0, 65, "it is registered once")
  call check(own(1) == mod(me + n - 1, n) .and. own(count) == me, 65, "it keeps what was put")
  deallocate(own)
  call check_end()
contains
  include "fortran_check.inc"
end program
