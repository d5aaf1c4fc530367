! Setup, queries, constants and caches in free form.
program fortran_setup
  implicit none
  include "shmem.fh"
  include "shmemx.fh"
  integer :: me, n, failures
  integer :: my_pe, num_pes
  double precision :: shmemx_wtime, earlier
  integer, external :: shmemx_int4_wait_until_timed, shmemx_int8_wait_until_timed, shmemx_quiet_timed
  integer(4), save :: int4 = 0
  integer(8), save :: int8 = 0
  integer :: major, minor, pe, here(4), there(4), on_stack
  character(len=shmem_max_name_len) :: name
  character(len=300) :: long_name
  pointer (here_at, here), (there_at, there)

  call check_begin()
  call check(my_pe() == me .and. num_pes() == n, 0, "MY_PE and NUM_PES")

  call shmem_info_get_version(major, minor)
  call check(major == shmem_major_version .and. minor == shmem_minor_version, 79, "version")
  name = repeat("x", len(name))
  call shmem_info_get_name(name)
  call check(name == shmem_vendor_string, 80, "name")
  long_name = repeat("x", len(long_name))
  call shmem_info_get_name(long_name)
  call check(long_name == shmem_vendor_string, 80, "a name is filled up with blanks")

  here_at = block(4)
  here = -1
  call shmem_barrier_all()
  do pe = 0, n - 1
    call check(shmem_pe_accessible(pe), 0, "a PE is accessible")
    call check(shmem_addr_accessible(here, pe), 0, "symmetric memory is accessible")
    call check(.not. shmem_addr_accessible(on_stack, pe), 0, "the stack is not accessible")
  end do
  call check(.not. shmem_pe_accessible(n), 0, "a PE beyond the last one")
  call check(.not. shmem_pe_accessible(-1), 0, "a PE before the first one")
  call check(shmem_ptr(here, me) == here_at, 0, "SHMEM_PTR to oneself")

  ! A store if the next PE's memory can be accessed directly, else a put.
  there_at = shmem_ptr(here, mod(me + 1, n))
  if (there_at /= 0) then
    there(2) = me
  else
    call shmem_put4(here(2), me, 1, mod(me + 1, n))
  end if
  call shmem_barrier_all()
  call check(here(2) == mod(me + n - 1, n), 0, "a store through SHMEM_PTR")
  call check(here(1) == -1 .and. here(3) == -1, 0, "a store beside it")

  call shmem_clear_cache_inv()
  call shmem_set_cache_inv()
  call shmem_udcflush()
  call shmem_clear_cache_line_inv(here)
  call shmem_set_cache_line_inv(here)
  call shmem_udcflush_line(here)
  earlier = shmemx_wtime()
  call check(shmemx_int4_wait_until_timed(int4, SHMEM_CMP_EQ, 1, 1d-3) == 1, 0, "SHMEMX_INT4_WAIT_UNTIL_TIMED times out")
  call check(shmemx_wtime() - earlier >= 1d-3, 0, "SHMEMX_INT4_WAIT_UNTIL_TIMED ends too early")
  call check(shmemx_int4_wait_until_timed(int4, SHMEM_CMP_EQ, 0, -1d0) == 0, 0, "SHMEMX_INT4_WAIT_UNTIL_TIMED ends")
  call check(shmemx_int8_wait_until_timed(int8, SHMEM_CMP_NE, 0_8, 0d0) == 1, 0, "SHMEMX_INT8_WAIT_UNTIL_TIMED times out")
  call check(shmemx_quiet_timed(1d0) == 0, 0, "SHMEMX_QUIET_TIMED")
  call check(earlier > 0 .and. shmemx_wtime() >= earlier, 0, "SHMEMX_WTIME goes forward")

  call return_block(here_at)
  call check_end()
contains
  include "fortran_check.inc"
end program
