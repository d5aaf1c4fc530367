//! The limit of open files (RLIMIT_NOFILE) of a PE. Sockets to many peers soon exceed the usual
//! one.
//!
//! A provider states how many descriptors it needs for each peer, and for each endpoint that issues
//! operations.

use crate::limits::getrlimit;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Descriptors for the program, the library and the connections that are being made. A program that
/// opens more may reach a limit that was raised.
const OTHERS: u64 = 256;
/// Descriptors left for the program to open after the transport. With more, a low limit leaves room
/// for fewer endpoints.
const OF_PROGRAM: u64 = 32;
/// The number of peers to which an endpoint is expected to connect. Few contexts reach more, also
/// in larger jobs. With a larger number, a low limit seems to have room for fewer endpoints; with a
/// smaller one, descriptors may run out.
const PEERS_OF_ENDPOINT: u64 = 16;
/// The interval at which a [`DescriptorWatch`] checks whether a descriptor is left.
const LOOK: Duration = Duration::from_secs(1);
/// The time for which a PE may have no descriptor left before the job ends.
const LIMIT: Duration = Duration::from_secs(10);

/// The lowest descriptor that a check may use for a moment. Lower ones are left free: a program
/// that replaces a standard stream closes it, and expects that the next file that it opens gets the
/// number.
const FIRST: i32 = 3;

/// The number of descriptors that a provider needs for each peer.
#[derive(Clone, Copy, Debug)]
pub struct PerPeer(pub u64);

/// Returns the new soft limit, if that of `limit` is below `needed` and may be raised.
fn raised(limit: Rlimit, needed: u64) -> Option<u64> {
    let soft = limit.current?;
    let new = match limit.maximum {
        Some(hard) => hard.min(needed),
        None => needed,
    };
    if soft >= new {
        return None;
    }
    Some(new)
}

/// Returns the number of files that this process may have open.
fn soft_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the soft limit to `needed`, as far as the hard limit allows.
fn raise(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    if let Some(new) = raised(limit, needed) {
        // The kernel refuses this only if the hard limit exceeds that of the system (fs.nr_open). A
        // later call then fails for the lack of descriptors, and says so.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(new),
                ..limit
            },
        );
    }
}

/// Returns true if this process may open no further file; `any` is any open descriptor.
pub fn is_exhausted(any: impl AsFd) -> bool {
    rustix::io::fcntl_dupfd_cloexec(any, FIRST).err() == Some(rustix::io::Errno::MFILE)
}

/// The number of descriptors that an endpoint needs over sockets.
#[derive(Clone, Copy, Debug)]
pub struct PerEndpoint {
    /// Descriptors of the endpoint itself.
    pub own: u64,
    /// Descriptors for one peer: of the connection that the endpoint makes to it, and of the one
    /// that the peer's endpoint makes.
    pub per_peer: u64,
}

impl PerEndpoint {
    /// Returns the number of endpoints, from 1 to `max`, for which this process has descriptors in
    /// a job of `n_pes` PEs, beside those that are open now. Raises the soft limit to what `max`
    /// endpoints need, as far as the hard limit allows.
    pub fn fitting(self, n_pes: u32, max: usize) -> usize {
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
        let taken = open + OF_PROGRAM;
        raise(taken + self.needed(n_pes) * max as u64);

        let limit = soft_limit();
        let number = self.number(n_pes, limit.saturating_sub(taken), max);
        if number < max {
            crate::log::info!(
                "contexts share {number} endpoints: the limit of {limit} descriptors (ulimit -n) has no room for more"
            );
        }
        number
    }

    /// Returns the number of descriptors that an endpoint needs in a job of `n_pes` PEs.
    fn needed(self, n_pes: u32) -> u64 {
        let peers = u64::from(n_pes.saturating_sub(1)).min(PEERS_OF_ENDPOINT);
        self.own + self.per_peer * peers
    }

    /// Returns the number of endpoints for which `left` descriptors suffice, from 1 to `max`.
    fn number(self, n_pes: u32, left: u64, max: usize) -> usize {
        usize::try_from(left / self.needed(n_pes)).map_or(max, |number| number.clamp(1, max))
    }
}

impl PerPeer {
    /// Returns the number of descriptors that a PE needs if it connects to all others in a job of
    /// `n_pes` PEs.
    fn needed(self, n_pes: u32) -> u64 {
        self.0 * u64::from(n_pes.saturating_sub(1)) + OTHERS
    }

    /// Raises the soft limit to what a PE may need in a job of `n_pes` PEs, as far as the hard
    /// limit allows. A limit that is still too low is reported only when descriptors run out, since
    /// few jobs connect all PEs with each other.
    pub fn raise_limit(self, n_pes: u32) {
        raise(self.needed(n_pes));
    }

    /// Works as [`raise_limit`](PerPeer::raise_limit), for a library that needs a limit of at least
    /// `minimum`.
    ///
    /// # Errors
    /// If the limit is below `minimum`, with the remedy.
    pub fn require(self, n_pes: u32, minimum: u64) -> Result<(), String> {
        self.raise_limit(n_pes);
        let limit = soft_limit();
        if limit < minimum {
            return Err(format!(
                "a PE may have {limit} files open, but needs at least {minimum}: {}",
                self.remedy()
            ));
        }
        Ok(())
    }

    /// Returns the message that no descriptors are left, with the remedy.
    pub fn exhausted_message(self) -> String {
        let limit = soft_limit();
        format!(
            "this PE has {limit} files open and may have no more; {}",
            self.remedy()
        )
    }

    fn remedy(self) -> String {
        format!(
            "raise `ulimit -n` (and its hard limit) to {} per PE of the job and {OTHERS} besides",
            self.0
        )
    }

    /// Returns the message for an error of the kernel, with the remedy if descriptors or memory
    /// have run out.
    pub fn explain(self, error: &io::Error) -> String {
        match error.raw_os_error() {
            Some(libc::EMFILE) => self.exhausted_message(),
            Some(libc::ENFILE) => {
                "this machine has no file descriptor left; raise the sysctl fs.file-max".to_owned()
            }
            Some(libc::ENOMEM | libc::ENOBUFS) => {
                format!("{error}; the host is short of memory: free some, or start fewer PEs on it")
            }
            // Of the calls whose errors are explained here, only those of epoll fail with ENOSPC.
            Some(libc::ENOSPC) => {
                "too many descriptors are watched; raise the sysctl fs.epoll.max_user_watches"
                    .into()
            }
            _ => error.to_string(),
        }
    }
}

/// Returns the descriptor that a system call has made.
///
/// # Errors
/// The error of the call. If a filter of system calls has refused the call, the error names it,
/// which the kernel's error does not.
pub fn made_by(call: &str, made: Result<OwnedFd, Errno>) -> io::Result<OwnedFd> {
    match made {
        Ok(descriptor) => Ok(descriptor),
        Err(Errno::PERM) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{call} is refused by a sandbox or container: permit it in its filter of system calls, or update \
                 its runtime"
            ),
        )),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if this error says that no descriptors are left.
pub fn ran_out(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Checks from time to time whether a descriptor is left, for a library that does not report it if
/// it has none.
#[derive(Debug, Default)]
pub struct DescriptorWatch {
    /// When the next check is due.
    next: Option<Instant>,
    /// When the checks began to find none.
    none_since: Option<Instant>,
}

impl DescriptorWatch {
    /// Checks whether a descriptor is left, unless the last check was less than `LOOK` ago. `any`
    /// is any open descriptor. Returns true if this check shows that none has been left for longer
    /// than `LIMIT`.
    pub fn is_over(&mut self, any: impl AsFd) -> bool {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.next = Some(now + LOOK);

        if !is_exhausted(any) {
            self.none_since = None;
            return false;
        }
        let none_since = *self.none_since.get_or_insert(now);
        now - none_since > LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_a_filter_refuses_is_named() {
        let refused = made_by("eventfd2", Err(Errno::PERM)).expect_err("it is refused");
        assert!(refused.to_string().starts_with("eventfd2 is refused by"));
        let exhausted = made_by("eventfd2", Err(Errno::MFILE)).expect_err("it fails");
        assert!(ran_out(&exhausted));
    }

    #[test]
    fn the_limit_is_raised_where_it_is_too_low() {
        let limit = |current, maximum| Rlimit { current, maximum };
        assert_eq!(PerPeer(2).needed(1), OTHERS);
        assert_eq!(PerPeer(2).needed(1000), 1998 + OTHERS);
        assert_eq!(raised(limit(Some(1024), Some(4096)), 2000), Some(2000));
        assert_eq!(raised(limit(Some(1024), Some(1500)), 2000), Some(1500));
        assert_eq!(raised(limit(Some(1024), None), 2000), Some(2000));
        assert_eq!(
            raised(limit(Some(1024), Some(1024)), 2000),
            None,
            "it is all there is"
        );
        assert_eq!(
            raised(limit(Some(1024), Some(4096)), 300),
            None,
            "it is enough"
        );
        assert_eq!(raised(limit(None, None), 300), None, "there is no limit");
    }

    #[test]
    fn endpoints_are_as_many_as_find_descriptors() {
        let each = PerEndpoint {
            own: 6,
            per_peer: 2,
        };
        assert_eq!(each.number(4, 120, 32), 10);
        assert_eq!(each.number(4, 12 * 40, 32), 32);
        assert_eq!(each.number(4, 3, 32), 1, "the first one is needed");
        assert_eq!(
            each.number(1000, 38 * 7, 32),
            7,
            "few contexts reach all PEs"
        );
        assert_eq!(each.number(4, u64::MAX, 32), 32);
        assert!(!is_exhausted(std::io::stdin()));
    }

    #[test]
    fn the_remedy_is_named() {
        let text = PerPeer(2).explain(&io::Error::from_raw_os_error(libc::EMFILE));
        assert!(
            text.contains("ulimit -n") && text.contains("2 per PE"),
            "{text}"
        );
        let text = PerPeer(2).explain(&io::Error::from_raw_os_error(libc::ECONNREFUSED));
        assert!(text.contains("refused"), "{text}");
        let text = PerPeer(2).explain(&io::Error::from_raw_os_error(libc::ENOBUFS));
        assert!(text.contains("fewer PEs"), "{text}");
        let why = PerPeer(6)
            .require(2, u64::MAX)
            .expect_err("nobody has as many");
        assert!(why.contains("ulimit -n"), "{why}");
        assert_eq!(PerPeer(6).require(2, 1), Ok(()));
    }
}
