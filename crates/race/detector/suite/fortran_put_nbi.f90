! The source of a non-blocking put is changed before a quiet.
! PEs: 2
program fortran_put_nbi
  implicit none
  include 'shmem.fh'
  integer, external :: shmem_my_pe
  integer(8), save :: x(8)
  integer(8), save :: source
  call shmem_init()
  call shmem_barrier_all()
  source = 1
  if (shmem_my_pe() == 0) then
    call shmem_put64_nbi(x, source, 1, 1) ! RACE
#ifdef CLEAN
    call shmem_quiet()
#endif
    source = 2 ! RACE
  end if
  call shmem_barrier_all()
  call shmem_finalize()
end program
