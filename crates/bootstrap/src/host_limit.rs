//! How long another host may be silent before the job has ended: the setting that `oshrun` and the
//! PEs share.

use std::time::Duration;

/// Its environment variable.
pub const VARIABLE: &str = "SHMEM_HOST_LIMIT";

/// Its value where the variable is not set.
pub const DEFAULT: &str = "10";

/// Which values it may have.
pub const EXPECTED: &str = "a number of seconds above 0";

/// A longer limit counts as this one, 30 years, so that sums with it do not overflow.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// Reads a value; `None` where it is not [`EXPECTED`].
pub fn parse(text: &str) -> Option<Duration> {
    let limit = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    (!limit.is_zero()).then_some(limit.min(LONGEST))
}
