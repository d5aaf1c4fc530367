! The largest of the values that the even PEs have, as max_to_all.f, by the module and a team.
!
!   oshfort max_to_all.f90 -o max_to_all && oshrun -n 8 ./max_to_all
program largest
  use, intrinsic :: iso_c_binding
  use shmem
  implicit none
  real(c_double), save, target :: foo, foo_max
  type(shmem_team_t) :: even
  integer(c_int) :: n_even, status

  call shmem_init()
  foo = sin(real(shmem_my_pe(), c_double))
  n_even = (shmem_n_pes() + 1) / 2
  ! From PE 0 on, a stride of 2.
  status = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, n_even, c_null_ptr, 0_c_long, even)
  if (even%handle /= SHMEM_TEAM_INVALID%handle) then
    status = shmem_max_reduce(even, foo_max, foo, 1_c_size_t)
    print *, 'Result on PE ', shmem_my_pe(), ' is ', foo_max
    call shmem_team_destroy(even)
  end if
  call shmem_finalize()
end program
