! The target of a put with a signal uses the data without waiting for the signal.
! PEs: 2
program fortran_module
  use, intrinsic :: iso_c_binding
  use shmem
  implicit none
  integer(c_int64_t), save, target :: x(8), signal
  integer(c_int64_t), save, target :: source(8)
  integer(c_int64_t) :: got
  call shmem_init()
  source = 7
  call shmem_barrier_all()
  if (shmem_my_pe() == 0) then
    call shmem_put_signal(x, source, 8_c_size_t, signal, 1_c_int64_t, SHMEM_SIGNAL_SET_OP, 1) ! RACE
  else
#ifdef CLEAN
    got = shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 1_c_int64_t)
#endif
    got = x(3) ! RACE
  end if
  call shmem_barrier_all()
  call shmem_finalize()
end program
