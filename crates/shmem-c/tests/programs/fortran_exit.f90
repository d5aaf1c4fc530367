! The last PE ends the job; what it printed to its units is there, though it flushed none.
program fortran_exit
  implicit none
  integer, external :: shmem_my_pe, shmem_n_pes
  integer :: forever(1)
  integer(kind=8) :: at
  integer :: code
  pointer (at, forever)
  call shmem_init()
  call shpalloc(at, 1, code, 1)
  forever = 0
  call shmem_barrier_all()
  if (shmem_my_pe() == shmem_n_pes() - 1) then
    print '(a)', "last words"
    call shmem_global_exit(7)
  end if
  call shmem_wait(forever, 0)
end program
