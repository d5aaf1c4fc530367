! Cray's teams, with splits called by members only and by all PEs, and its all-to-all of blocks of any size.
program fortran_teams
  implicit none
  include "shmem.fh"
  include "shmemx.fh"
  integer, external :: shmemx_team_my_pe, shmemx_team_n_pes, shmemx_team_translate_pe
  integer :: me, n, failures
  integer :: psync(shmem_alltoall_sync_size)
  save psync
  data psync / shmem_alltoall_sync_size * shmem_sync_value /

  call check_begin()
  call strided(.false.)
  call strided(.true.)
  call colored()
  call exchange()
  call check_end()
contains
  include "fortran_check.inc"

  ! The odd PEs. Other PEs that call get the null team.
  subroutine strided(all_call)
    logical, intent(in) :: all_call
    integer(kind=8) :: team
    integer :: odd
    odd = n / 2
    team = 77
    if (odd > 0 .and. (all_call .or. mod(me, 2) == 1)) then
      call shmemx_team_split_strided(shmem_team_world, 1, 2, odd, team)
      if (mod(me, 2) == 0) then
        call check(team == shmem_team_null, 85, "outsiders get SHMEM_TEAM_NULL")
      else
        call check(shmemx_team_my_pe(team) == me / 2, 85, "members are in order of their ranks")
        call check(shmemx_team_n_pes(team) == odd, 85, "PE_size members")
        call check(shmemx_team_translate_pe(team, odd - 1, shmem_team_world) == 2 * odd - 1, 85, "the last")
        call check(shmemx_team_translate_pe(shmem_team_world, 0, team) == -1, 85, "PE 0 is no member")
        call shmemx_team_destroy(team)
        call check(team == shmem_team_null, 85, "a handle is null when its team is gone")
      end if
    end if
    call shmem_barrier_all()
    call check(shmemx_team_n_pes(shmem_team_node) == n, 85, "all PEs of this test are on one machine")
    call check(shmemx_team_n_pes(shmem_team_shared) <= n, 85, "some share memory")
  end subroutine

  ! Three colors, the last PE first in each; PE 0 has none.
  subroutine colored()
    integer(kind=8) :: team
    integer :: color, members, pe
    color = mod(me, 3)
    if (me == 0) color = shmem_color_undefined
    call shmemx_team_split(shmem_team_world, color, -me, team)
    if (me == 0) then
      call check(team == shmem_team_null, 85, "a PE without a color is in no team")
    else
      members = 0
      do pe = 1, n - 1
        if (mod(pe, 3) == color) members = members + 1
      end do
      call check(shmemx_team_n_pes(team) == members, 85, "the members of a color")
      call check(shmemx_team_translate_pe(team, members - 1, shmem_team_world) == merge(3, color, color == 0), &
                 85, "keys decide the order")
      call shmemx_team_destroy(team)
    end if
    call shmem_barrier_all()
  end subroutine

  ! PE k sends k + l + 1 bytes to PE l.
  subroutine exchange()
    integer(kind=1) :: source(*), target(*)
    integer(kind=8) :: source_at, target_at, room, total
    integer(kind=8) :: t_offsets(0:n - 1), t_sizes(0:n - 1), s_offsets(0:n - 1), s_sizes(0:n - 1)
    pointer (source_at, source), (target_at, target)
    integer :: k, i
    room = 2 * n
    source_at = block(n * n)
    target_at = block(n * n)
    do k = 0, n - 1
      s_offsets(k) = k * room
      t_offsets(k) = k * room
      s_sizes(k) = me + k + 1
      do i = 1, int(s_sizes(k))
        source(s_offsets(k) + i) = int(mod(11 * me + 7 * k + i, 100), 1)
      end do
    end do
    target(1:n * room) = -1
    t_sizes = -1
    call shmem_barrier_all()
    call shmemx_alltoallv(target, t_offsets, t_sizes, source, s_offsets, s_sizes, 0, 0, n, psync)
    call check(all(t_sizes == s_sizes), 85, "SHMEMX_ALLTOALLV: sizes")
    do k = 0, n - 1
      do i = 1, k + me + 1
        call check(target(t_offsets(k) + i) == mod(11 * k + 7 * me + i, 100), 85, "SHMEMX_ALLTOALLV")
      end do
      if (k + me + 1 < room) call check(target(t_offsets(k) + k + me + 2) == -1, 85, "beyond a block")
    end do
    call shmem_barrier_all()

    target(1:n * room) = -1
    call shmem_barrier_all()
    call shmemx_alltoallv_packed(target, n * room, total, source, s_offsets, s_sizes, 0, 0, n, psync)
    call check(total == sum(s_sizes), 85, "SHMEMX_ALLTOALLV_PACKED: total")
    call check(all(target(1:total) >= 0), 85, "SHMEMX_ALLTOALLV_PACKED leaves no gap")
    if (total < n * room) call check(target(total + 1) == -1, 85, "SHMEMX_ALLTOALLV_PACKED: the end")
    call shmem_barrier_all()
    call return_block(target_at)
    call return_block(source_at)
  end subroutine
end program
