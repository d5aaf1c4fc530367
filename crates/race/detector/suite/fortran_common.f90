! A put to a common block, and a load of its element.
! PEs: 2
program fortran_common
  implicit none
  include 'shmem.fh'
  integer, external :: shmem_my_pe
  integer(8) :: x(8), y
  common /shared/ x
  call shmem_init()
  call shmem_barrier_all()
  y = 1
  if (shmem_my_pe() == 0) call shmem_put64(x(3), y, 1, 1) ! RACE
#ifdef CLEAN
  call shmem_barrier_all()
#endif
  if (shmem_my_pe() == 1) then
    y = x(3) ! RACE
  end if
  call shmem_barrier_all()
  if (y < 0) print *, y
  call shmem_finalize()
end program
