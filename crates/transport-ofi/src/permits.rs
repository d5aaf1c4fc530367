//! Permits for making connections. If many PEs of a node start many connections over one NIC, most
//! attempts fail. So all eps of a PE together make few connections at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of connections that a PE makes at once, without those that take long: they give
/// their permits back.
pub(crate) const MAX_AT_ONCE: u32 = 4;

/// The number of permits that are taken, and of the connections that a PE has made.
#[derive(Default)]
pub(crate) struct ConnectionPermits {
    taken: AtomicU32,
    made: AtomicU32,
}

/// The permission to make one connection, until it is dropped.
pub(crate) struct ConnectionPermit(Arc<ConnectionPermits>);

impl ConnectionPermits {
    /// Takes a permit. Returns `None` if all are taken.
    pub(crate) fn take(self: &Arc<Self>) -> Option<ConnectionPermit> {
        // Relaxed: a permit limits the load of the network and protects no data.
        let taken = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                if taken < MAX_AT_ONCE {
                    Some(taken + 1)
                } else {
                    None
                }
            });

        match taken {
            Ok(_) => Some(ConnectionPermit(Arc::clone(self))),
            Err(_) => None,
        }
    }

    /// Counts a connection that was made. Returns the number of connections made so far.
    pub(crate) fn count_made(&self) -> u32 {
        // Relaxed: the number is only logged.
        self.made.fetch_add(1, Ordering::Relaxed) + 1
    }

    #[cfg(test)]
    pub(crate) fn n_left(&self) -> u32 {
        MAX_AT_ONCE - self.taken.load(Ordering::Relaxed)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_free_again_once_it_is_dropped() {
        let permits = Arc::new(ConnectionPermits::default());
        let mut taken: Vec<ConnectionPermit> =
            (0..MAX_AT_ONCE).filter_map(|_| permits.take()).collect();
        assert_eq!(taken.len(), MAX_AT_ONCE as usize);
        assert!(permits.take().is_none());

        taken.truncate(MAX_AT_ONCE as usize - 2);
        let again = [permits.take(), permits.take()];
        assert!(again.iter().all(Option::is_some) && permits.take().is_none());

        drop((taken, again));
        assert_eq!(permits.n_left(), MAX_AT_ONCE);
    }
}
