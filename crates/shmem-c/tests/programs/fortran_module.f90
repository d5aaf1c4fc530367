! The Fortran module: specific and generic names, teams, contexts, signals, addresses.
program teams
  use shmem
  implicit none
  integer(c_long), save :: x(4,2), y(4,2), total, mine
  real(c_double), save :: a(8), b(8)
  integer(c_int64_t), save :: signal
  type(shmem_team_t) :: half
  type(shmem_ctx_t) :: ctx
  integer(c_int) :: me, n, status
  integer(c_long) :: old
  integer(c_int64_t) :: seen
  call shmem_init()
  me = shmem_my_pe(); n = shmem_n_pes()
  x = me; y = -1; a = me; signal = 0; mine = me; total = 0
  call shmem_barrier_all()
  call shmem_put(y, x, 8_c_size_t, mod(me + 1, n))
  call shmem_put_signal(b, a, 8_c_size_t, signal, 1_c_int64_t, SHMEM_SIGNAL_ADD_OP, mod(me + 1, n))
  seen = shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 1_c_int64_t)
  call shmem_barrier_all()
  if (any(y /= mod(me + n - 1, n))) print *, 'FAIL put', me, y
  if (any(b /= real(mod(me + n - 1, n), c_double))) print *, 'FAIL put_signal', me, b
  status = shmem_sum_reduce(SHMEM_TEAM_WORLD, total, mine, 1_c_size_t)
  if (total /= n * (n - 1) / 2) print *, 'FAIL reduce', total
  status = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, (n + 1) / 2, c_null_ptr, 0_c_long, half)
  if (half%handle /= SHMEM_TEAM_INVALID%handle) then
    status = shmem_team_create_ctx(half, SHMEM_CTX_SERIALIZED, ctx)
    old = shmem_atomic_fetch_add(ctx, total, 1_c_long, 0)
    call shmem_ctx_quiet(ctx)
    call shmem_ctx_destroy(ctx)
    call shmem_team_destroy(half)
  end if
  call shmem_barrier_all()
  if (me == 0 .and. total /= n * (n - 1) / 2 + (n + 1) / 2) print *, 'FAIL atomic', total
  if (shmem_g(mine, n - 1) /= n - 1) print *, 'FAIL g'
  if (me == 0) call shmem_long_put(y, x, 1_c_size_t, 0)
  call shmem_barrier_all()
  call addresses(me, n)
  if (me == 0) print '(a,i0)', 'n_pes ', n
  if (me == 0) print '(a)', 'PASS'
  call shmem_finalize()
contains

  ! Addresses as type(c_ptr) and as variables; null pointers.
  subroutine addresses(me, n)
    integer(c_int), intent(in) :: me, n
    integer(c_long), save :: flags(4), word
    integer(c_int) :: masked(4), one
    integer(c_size_t) :: at(4), k
    type(c_ptr) :: block
    real(c_double), pointer :: line(:), plane(:,:), number
    flags = [1, 2, 3, 4]; masked = [0, 0, 1, 1]; one = 0; word = me
    block = shmem_malloc(64_c_size_t)
    call c_f_pointer(block, plane, [2, 2])
    plane = me
    call shmem_barrier_all()
    if (.not. c_associated(shmem_ptr(block, me), block)) print *, 'FAIL ptr'
    if (.not. c_associated(shmem_ptr(plane, me), block)) print *, 'FAIL ptr of an array'
    if (.not. c_associated(shmem_ptr(word, me))) print *, 'FAIL ptr of a scalar'
    if (.not. c_associated(shmem_team_ptr(SHMEM_TEAM_WORLD, block, me), block)) print *, 'FAIL team_ptr'
    if (shmem_addr_accessible(block, n - 1) /= 1) print *, 'FAIL addr_accessible'
    if (shmem_addr_accessible(c_null_ptr, 0) /= 0) print *, 'FAIL addr_accessible of null'
    call shmem_barrier_all()
    block = shmem_realloc(block, 128_c_size_t)
    call c_f_pointer(block, plane, [2, 2])
    if (any(plane /= me)) print *, 'FAIL realloc'
    call shmem_free(block)
    call c_f_pointer(shmem_realloc(c_null_ptr, 64_c_size_t), line, [8])
    call shmem_free(line)
    call c_f_pointer(shmem_malloc(64_c_size_t), plane, [2, 4])
    call shmem_free(plane)
    call c_f_pointer(shmem_malloc(8_c_size_t), number)
    call shmem_free(number)
    call shmem_free(c_null_ptr)
    if (shmem_test_all(flags, 4_c_size_t, c_null_ptr, SHMEM_CMP_GE, 2_c_long) /= 0) print *, 'FAIL all'
    if (shmem_test_all(flags(3:), 1_c_size_t, one, SHMEM_CMP_GE, 2_c_long) /= 1) print *, 'FAIL one'
    k = shmem_long_wait_until_any(flags, 4_c_size_t, c_null_ptr, SHMEM_CMP_GE, 4_c_long)
    if (k /= 3) print *, 'FAIL any', k
    k = shmem_long_wait_until_some(flags, 4_c_size_t, at, masked, SHMEM_CMP_GT, 0_c_long)
    if (k /= 2) print *, 'FAIL some', k
  end subroutine

end program teams
