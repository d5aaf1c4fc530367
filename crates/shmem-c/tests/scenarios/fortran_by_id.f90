! The routines that form a job by a unique id, in a job of one PE.
program fortran_by_id
  implicit none
  character(len=128) :: id
  external :: shmemx_get_uniqueid, shmemx_init_uniqueid
  integer, external :: shmem_my_pe, shmem_n_pes

  call shmemx_get_uniqueid(id)
  call shmemx_init_uniqueid(0, 1, id)
  print '("n_pes ", i0)', shmem_n_pes()
  if (shmem_my_pe() == 0 .and. id(1:9) == "rushmem1-") print '("PASS")'
  call shmem_finalize()
end program fortran_by_id
