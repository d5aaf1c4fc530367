! A PE changes the source of a neighbor's next reduction before it has begun.
! PEs: 2
program fortran_reduce
  implicit none
  include 'shmem.fh'
  integer, external :: shmem_my_pe
  integer(4), save :: source(4), dest(4)
  integer(4), save :: work(SHMEM_REDUCE_MIN_WRKDATA_SIZE)
  integer(8), save :: psync(SHMEM_REDUCE_SYNC_SIZE)
  integer(4), save :: value(4)
  psync = SHMEM_SYNC_VALUE
  call shmem_init()
  source = 1
  call shmem_barrier_all()
  if (shmem_my_pe() == 0) then
    call shmem_integer_put(source, value, 4, 1) ! RACE
  end if
#ifdef CLEAN
  call shmem_barrier_all()
#endif
  call shmem_int4_max_to_all(dest, source, 4, 0, 0, 2, work, psync) ! RACE
  call shmem_barrier_all()
  call shmem_finalize()
end program
