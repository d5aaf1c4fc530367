! Locks that all PEs want at once, of a default INTEGER, or of the kind LOCK_KIND, of which the
! library uses the first 4 bytes.
#ifndef LOCK_KIND
#define LOCK_KIND kind(0)
#endif
program fortran_lock_contended
  implicit none
  include "shmem.fh"
  integer, parameter :: turns = 96, locks = 3, words = locks * LOCK_KIND / 4
  integer, external :: shmem_test_lock, shmem_int4_finc, shmem_int4_fadd
  integer :: me, n, failures
  integer(LOCK_KIND) :: lock(locks)
  integer :: shared(2), i, by_test
  pointer (lock_at, lock), (shared_at, shared)

  call check_begin()
  lock_at = block(words)
  shared_at = block(2)
  lock = 0
  do i = 1, locks
    do by_test = 0, 2
      call exclusion(lock(i), by_test, mod(i + by_test, n))
    end do
  end do
  call return_block(shared_at)
  call return_block(lock_at)
  call check_end()
contains
  include "fortran_check.inc"

  ! A holder counts itself in, adds to a word that only the lock protects, and counts itself out.
  ! The words are on PE keeper.
  subroutine exclusion(this, by_test, keeper)
    integer(LOCK_KIND) :: this
    integer :: by_test, keeper, seen, turn
    shared = 0
    call shmem_barrier_all()
    do turn = 1, turns / n
      if (by_test == 1 .or. by_test == 2 .and. mod(turn + me, 2) == 0) then
        do while (shmem_test_lock(this) /= 0)
        end do
      else
        call shmem_set_lock(this)
      end if
      call check(shmem_int4_finc(shared(1), keeper) == 0, 70, "another PE holds the lock")
      call shmem_get4(seen, shared(2), 1, keeper)
      seen = seen + 1
      call shmem_put4(shared(2), seen, 1, keeper)
      if (mod(turn, 2) == 0) call shmem_quiet()
      call shmem_int4_add(shared(1), -1, keeper)
      call shmem_clear_lock(this)
    end do
    call shmem_barrier_all()
    if (me == keeper) call check(all(shared == [0, turns / n * n]), 71, "every turn counts")
    call shmem_barrier_all()
  end subroutine
end program
