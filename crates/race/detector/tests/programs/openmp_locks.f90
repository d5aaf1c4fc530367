! Threads of OpenMP get into a word and store to it, with the locks of OpenMP in Fortran. PEs: 1
program locks
  use omp_lib
  use shmem
  implicit none
  integer(8), save :: x, word
  integer :: provided, status
  integer(omp_lock_kind) :: lock
  integer(omp_nest_lock_kind) :: nest_lock
  status = shmem_init_thread(SHMEM_THREAD_MULTIPLE, provided)
  call omp_init_lock(lock)
  call omp_init_nest_lock(nest_lock)
  !$omp parallel num_threads(3)
  call omp_set_lock(lock)
  call shmem_get64(word, x, 1_8, 0)
  word = word + 1
  call omp_unset_lock(lock)
  do while (.not. omp_test_lock(lock))
  end do
  call shmem_get64(word, x, 1_8, 0)
  call omp_unset_lock(lock)
  !$omp end parallel
  !$omp parallel num_threads(3)
  call omp_set_nest_lock(nest_lock)
  call shmem_get64(word, x, 1_8, 0)
  word = word + 1
  call omp_unset_nest_lock(nest_lock)
  !$omp end parallel
  call shmem_finalize()
end program
