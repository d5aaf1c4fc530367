! Locks of one default INTEGER: exclusion, the results of SHMEM_TEST_LOCK, and unchanged adjacent words.
program fortran_lock
  implicit none
  include "shmem.fh"
  integer, parameter :: turns = 60, locks = 5, guard = -559038737
  integer, external :: shmem_test_lock
  integer :: me, n, failures
  integer :: word(2 * locks + 1), total, i
  pointer (at, word)

  call check_begin()
  at = block(2 * locks + 1)
  ! The even elements are locks, some in each half of an aligned word of 8 bytes, with guards between them.
  do i = 1, 2 * locks + 1
    word(i) = merge(0, guard, mod(i, 2) == 0)
  end do
  call shmem_barrier_all()
  do i = 1, locks
    call answers(word(2 * i))
  end do
  call exclusion(word(2), .false.)
  call exclusion(word(8), .true.)
  call nested(word(4), word(6))
  do i = 1, 2 * locks + 1, 2
    call check(word(i) == guard, 70, "a lock has 4 bytes")
  end do
  call shmem_barrier_all()
  call return_block(at)
  call check_end()
contains
  include "fortran_check.inc"

  subroutine answers(lock)
    integer :: lock, k
    if (me == n - 1) call check(shmem_test_lock(lock) == 0, 70, "SHMEM_TEST_LOCK of a free lock")
    call shmem_barrier_all()
    do k = 1, 3
      if (me /= n - 1) call check(shmem_test_lock(lock) == 1, 70, "SHMEM_TEST_LOCK of a taken lock")
    end do
    call shmem_barrier_all()
    if (me == n - 1) call shmem_clear_lock(lock)
    call shmem_barrier_all()
  end subroutine

  ! Reads and writes a word of PE 0, protected only by the lock. SHMEM_CLEAR_LOCK completes the put.
  subroutine exclusion(lock, by_test)
    integer :: lock, counter, seen, turn
    logical :: by_test
    pointer (counter_at, counter)
    counter_at = block(1)
    counter = 0
    call shmem_barrier_all()
    do turn = 1, turns
      if (by_test) then
        do while (shmem_test_lock(lock) /= 0)
        end do
      else
        call shmem_set_lock(lock)
      end if
      call shmem_get4(seen, counter, 1, 0)
      seen = seen + 1
      call shmem_put4_nbi(counter, seen, 1, 0)
      call shmem_clear_lock(lock)
    end do
    call shmem_barrier_all()
    if (me == 0) call check(counter == turns * n, 71, "every turn counts")
    call return_block(counter_at)
  end subroutine

  subroutine nested(outer, inner)
    integer :: outer, inner, counter, seen, turn
    pointer (counter_at, counter)
    counter_at = block(1)
    counter = 0
    call shmem_barrier_all()
    do turn = 1, turns / 3
      call shmem_set_lock(outer)
      call shmem_set_lock(inner)
      call shmem_get4(seen, counter, 1, n - 1)
      call shmem_put4(counter, seen + 1, 1, n - 1)
      call shmem_clear_lock(inner)
      call shmem_clear_lock(outer)
    end do
    call shmem_barrier_all()
    if (me == n - 1) call check(counter == (turns / 3) * n, 71, "every turn under two locks counts")
    call return_block(counter_at)
  end subroutine
end program
