//! How many files a PE may have open: with many peers the usual limit is soon reached.
#![forbid(unsafe_code)]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Descriptors of the program, the library and the connections that are under way.
const OTHERS: u64 = 256;

/// How many a PE of a job of `n_pes` may need: a connection from and to every other.
fn needed(n_pes: u32) -> u64 {
    2 * u64::from(n_pes.saturating_sub(1)) + OTHERS
}

/// The soft limit to set, where `limit` is too low and may be raised.
fn raised(limit: Rlimit, needed: u64) -> Option<u64> {
    let soft = limit.current?;
    let new = limit.maximum.map_or(needed, |hard| hard.min(needed));
    (soft < new).then_some(new)
}

/// Raise the soft limit as far as the hard one allows and the job may need. A limit that is still too
/// low is reported if it is ever met, since few jobs connect every PE to every other.
pub(crate) fn make_room(n_pes: u32) {
    let limit = getrlimit(Resource::Nofile);
    if let Some(new) = raised(limit, needed(n_pes)) {
        // Below the hard limit nothing refuses it.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(new), ..limit });
    }
}

/// An error of the kernel, with the cure where descriptors have run out.
pub(crate) fn explain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EMFILE) => {
            let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
            format!(
                "this PE has {limit} files open and may have no more; raise `ulimit -n` (and its hard \
                 limit) to 2 per PE of the job and {OTHERS} besides"
            )
        }
        Some(libc::ENFILE) => {
            "this machine has no file descriptor left; raise the sysctl fs.file-max".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_where_it_is_too_low() {
        let limit = |current, maximum| Rlimit { current, maximum };
        assert_eq!(needed(1), OTHERS);
        assert_eq!(needed(1000), 1998 + OTHERS);
        assert_eq!(raised(limit(Some(1024), Some(4096)), 2000), Some(2000));
        assert_eq!(raised(limit(Some(1024), Some(1500)), 2000), Some(1500));
        assert_eq!(raised(limit(Some(1024), None), 2000), Some(2000));
        assert_eq!(raised(limit(Some(1024), Some(1024)), 2000), None, "it is all there is");
        assert_eq!(raised(limit(Some(1024), Some(4096)), 300), None, "it is enough");
        assert_eq!(raised(limit(None, None), 300), None, "there is no limit");
    }

    #[test]
    fn the_cure_is_named() {
        let text = explain(&io::Error::from_raw_os_error(libc::EMFILE));
        assert!(text.contains("ulimit -n"), "{text}");
        let text = explain(&io::Error::from_raw_os_error(libc::ECONNREFUSED));
        assert!(text.contains("refused"), "{text}");
    }
}
