! The last PE ends the job with SHMEM_GLOBAL_EXIT, which must flush the file that the PE wrote.
program fortran_exit
  implicit none
  integer, external :: shmem_my_pe, shmem_n_pes
  integer :: forever(1)
  integer(kind=8) :: at
  integer :: code
  character(len=1000) :: name
  pointer (at, forever)
  call shmem_init()
  call shpalloc(at, 1, code, 1)
  forever = 0
  call shmem_barrier_all()
  if (shmem_my_pe() == shmem_n_pes() - 1) then
    call get_command_argument(1, name)
    open (unit=10, file=name)
    write (10, '(a)') "last words"
    call shmem_global_exit(7)
  end if
  call shmem_wait(forever, 0)
end program
