! The module of Fortran: specific and generic names, teams, contexts, signals.
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
  if (me == 0) print '(a,i0)', 'n_pes ', n
  if (me == 0) print '(a)', 'PASS'
  call shmem_finalize()
end program teams
