! The destination of a non-blocking get is used before a quiet.
! PEs: 2
program fortran_get_nbi
  implicit none
  include 'shmem.fh'
  integer, external :: shmem_my_pe
  integer(8), save :: x(8)
  integer(8), save :: got(8), total
  call shmem_init()
  call shmem_barrier_all()
  if (shmem_my_pe() == 0) then
    call shmem_get64_nbi(got, x, 8, 1) ! RACE
#ifdef CLEAN
    call shmem_quiet()
#endif
    total = got(5) ! RACE
  end if
  call shmem_barrier_all()
  call shmem_finalize()
end program
