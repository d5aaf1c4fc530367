//! Splitting teams (OpenSHMEM 1.6, §9.4.6 and §9.4.7, and Cray's forms). These routines are
//! collective over the members of the team, unless their documentation says otherwise.

use crate::job::c_number;
use crate::panics::mistake;
use crate::team::{Team, TeamOptions};
use crate::threads::Threads;
use core::ffi::c_int;
use rushmem_runtime::TeamHandle;
use rushmem_runtime::extension_constants::SHMEM_COLOR_UNDEFINED;
use rushmem_runtime::team;
use std::fmt;

/// The error if a team cannot be split as requested (§9.4.6, §9.4.7): it has no such members, or
/// there are too many teams. It is the same on all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitError(());

impl fmt::Display for SplitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the team cannot be split so: it does not have such members, or some of them are in too many teams",
        )
    }
}

impl std::error::Error for SplitError {}

impl<'s, C: Threads> Team<'s, C> {
    /// Splits off `size` members: `start`, `start + stride`, and so on (`shmem_team_split_strided`,
    /// §9.4.6). Returns `None` on the other members.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let n_even = shmem.n_pes().div_ceil(2);
    /// let even = shmem.world().split_strided(0, 2, n_even)?;
    /// assert_eq!(even.is_some(), shmem.my_pe() % 2 == 0);
    /// # Ok::<(), shmem::SplitError>(())
    /// ```
    ///
    /// # Errors
    /// If there are no such members, or too many teams.
    #[doc(alias = "shmem_team_split_strided")]
    pub fn split_strided(
        &self,
        start: usize,
        stride: isize,
        size: usize,
    ) -> Result<Option<Team<'s, C>>, SplitError> {
        self.split_strided_with(TeamOptions::new(), start, stride, size)
    }

    /// Splits off `size` members: `start`, `start + stride`, and so on (`shmem_team_split_strided`,
    /// §9.4.6), for the use that `config` describes (§9.4.3). Returns `None` on the other members.
    ///
    /// ```
    /// # use shmem::TeamOptions;
    /// # let shmem = shmem::init();
    /// let options = TeamOptions::new().contexts(2);
    /// let all = shmem.world().split_strided_with(options, 0, 1, shmem.n_pes())?;
    /// assert_eq!(all.map(|team| team.config()), Some(options));
    /// # Ok::<(), shmem::SplitError>(())
    /// ```
    ///
    /// # Errors
    /// If there are no such members, or too many teams.
    pub fn split_strided_with(
        &self,
        config: TeamOptions,
        start: usize,
        stride: isize,
        size: usize,
    ) -> Result<Option<Team<'s, C>>, SplitError> {
        let call = call!("Team::split_strided");
        let start = c_number(start);
        // A stride that no `c_int` holds leads out of every team.
        let stride = c_int::try_from(stride).unwrap_or(c_int::MAX);
        let size = c_number(size);
        let made = team::split_strided(call, self.handle(), start, stride, size, hint(config));
        made.map(own).ok_or(SplitError(()))
    }

    /// Arranges the members in rows of `xrange`. Returns the team of this PE's row, and that of its
    /// column (`shmem_team_split_2d`, §9.4.7).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (row, column) = shmem.world().split_2d(2)?;
    /// assert_eq!((row.my_pe(), column.my_pe()), (shmem.my_pe() % 2, shmem.my_pe() / 2));
    /// # Ok::<(), shmem::SplitError>(())
    /// ```
    ///
    /// # Errors
    /// If `xrange` is 0, or there are too many teams.
    #[doc(alias = "shmem_team_split_2d")]
    pub fn split_2d(&self, xrange: usize) -> Result<(Team<'s, C>, Team<'s, C>), SplitError> {
        self.split_2d_with(xrange, TeamOptions::new(), TeamOptions::new())
    }

    /// Arranges the members in rows of `xrange`. Returns the team of this PE's row and that of its
    /// column (`shmem_team_split_2d`, §9.4.7). `xaxis` describes the use of the rows, `yaxis` that
    /// of the columns (§9.4.3).
    ///
    /// ```
    /// # use shmem::TeamOptions;
    /// # let shmem = shmem::init();
    /// let (rows, columns) = (TeamOptions::new().contexts(2), TeamOptions::new());
    /// let (row, column) = shmem.world().split_2d_with(2, rows, columns)?;
    /// assert_eq!((row.config(), column.config()), (rows, columns));
    /// # Ok::<(), shmem::SplitError>(())
    /// ```
    ///
    /// # Errors
    /// If `xrange` is 0, or there are too many teams.
    pub fn split_2d_with(
        &self,
        xrange: usize,
        xaxis: TeamOptions,
        yaxis: TeamOptions,
    ) -> Result<(Team<'s, C>, Team<'s, C>), SplitError> {
        let call = call!("Team::split_2d");
        let xrange = c_number(xrange);
        let made = team::split_2d(call, self.handle(), xrange, hint(xaxis), hint(yaxis));
        let (row, column) = made.ok_or(SplitError(()))?;
        Ok((Team::split_off(row), Team::split_off(column)))
    }

    /// Splits the team into one team for each color. Members of the same color are numbered in the
    /// order of their keys, and if these are equal, of their numbers in this team. Returns `None`
    /// on members without a color (`shmemx_team_split`, an extension of Cray's).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let parity = shmem.my_pe() % 2;
    /// let half = shmem.world().split(Some(parity), 0)?.expect("a color");
    /// assert_eq!(half.my_pe(), shmem.my_pe() / 2);
    /// # Ok::<(), shmem::SplitError>(())
    /// ```
    ///
    /// # Errors
    /// If a member of the new team is in too many teams; all its members get the error.
    ///
    /// # Panics
    /// If a color or a key is above 2,147,483,647.
    #[doc(alias = "shmemx_team_split")]
    #[track_caller]
    pub fn split(
        &self,
        color: Option<usize>,
        key: isize,
    ) -> Result<Option<Team<'s, C>>, SplitError> {
        let call = call!("Team::split");
        let color = match color.map(c_int::try_from) {
            None => SHMEM_COLOR_UNDEFINED,
            Some(Ok(color)) => color,
            Some(Err(_)) => mistake!(call, "argument color is too large; colors are below 2^31"),
        };
        let Ok(key) = c_int::try_from(key) else {
            mistake!(call, "argument key is {key}; keys are below 2^31")
        };
        let made = team::split_color(call, self.handle(), color, key);
        made.map(own).map_err(|_| SplitError(()))
    }

    /// Arranges the members in a grid of these ranges, whose first dimension varies fastest.
    /// Returns, for each dimension, the team of the members that differ from this PE in this
    /// coordinate only (`shmemx_team_split_2d` and `_3d`, extensions of Cray's). On members beyond
    /// the grid, and on all members if a range is 0, the entries are `None`. The last positions of
    /// the grid may be empty.
    ///
    /// The job ends with a message if the ranges differ between members.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let [line, column] = shmem.world().split_grid([shmem.n_pes(), 1])?;
    /// assert_eq!(line.map(|team| team.n_pes()), Some(shmem.n_pes()));
    /// assert_eq!(column.map(|team| team.n_pes()), Some(1));
    /// # Ok::<(), shmem::SplitError>(())
    /// ```
    ///
    /// # Errors
    /// If a member is in too many teams; all members get the error.
    #[doc(alias = "shmemx_team_split_2d")]
    #[doc(alias = "shmemx_team_split_3d")]
    pub fn split_grid<const D: usize>(
        &self,
        ranges: [usize; D],
    ) -> Result<[Option<Team<'s, C>>; D], SplitError> {
        let ranges = ranges.map(|range| ("ranges", c_number(range)));
        let made = team::split_grid(call!("Team::split_grid"), self.handle(), ranges);
        made.map(|teams| teams.map(own)).map_err(|_| SplitError(()))
    }

    /// Splits off `size` members: `start`, `start + stride`, and so on
    /// (`shmemx_team_split_strided`, an extension of Cray's). Only these members call, and the new
    /// team numbers them in the order of their numbers in the world. On another PE the call returns
    /// `None` at once.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// if shmem.my_pe() == 0 {
    ///     let alone = shmem.world().split_members(0, 1, 1)?;
    ///     assert_eq!(alone.map(|team| team.n_pes()), Some(1));
    /// }
    /// # Ok::<(), shmem::SplitError>(())
    /// ```
    ///
    /// # Errors
    /// If a member of the new team is in too many teams; all its members get the error.
    ///
    /// # Panics
    /// If there are no such members.
    #[doc(alias = "shmemx_team_split_strided")]
    #[track_caller]
    pub fn split_members(
        &self,
        start: usize,
        stride: usize,
        size: usize,
    ) -> Result<Option<Team<'s, C>>, SplitError> {
        let call = call!("Team::split_members");
        let n_pes = self.n_pes();

        // A number beyond the maximum becomes the maximum, which no member has.
        let last = start.saturating_add(stride.saturating_mul(size.saturating_sub(1)));
        let is_repeated = stride == 0 && size > 1;
        if size == 0 || last >= n_pes || is_repeated {
            mistake!(
                call,
                "the members {start}, {start} + {stride} and so on, {size} in all, are not in the \
                 team, whose PEs are numbered 0 to {}; pass a start, a stride of at least 1 and a \
                 size of at least 1",
                n_pes - 1
            );
        }

        let [start, stride, size] = [start, stride, size].map(c_number);
        let made = team::split_strided_by_members(call, self.handle(), start, stride, size);
        made.map(own).map_err(|_| SplitError(()))
    }
}

fn hint(config: TeamOptions) -> team::TeamConfig {
    team::TeamConfig {
        num_contexts: c_int::try_from(config.contexts).unwrap_or(c_int::MAX),
    }
}

/// Returns the team of a handle; `None` if this PE is no member, so that the handle is invalid.
fn own<'s, C: Threads>(made: TeamHandle) -> Option<Team<'s, C>> {
    if made == TeamHandle::INVALID {
        return None;
    }
    Some(Team::split_off(made))
}
