//! The number of connections that this PE makes at once, whichever of its eps makes them. If many
//! PEs of a node begin many at once over one NIC, most attempts fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The connections that a PE makes at once, at most.
pub(crate) const MOST_AT_ONCE: u32 = 4;

/// The connections that a PE is making, and how many it has made.
#[derive(Default)]
pub(crate) struct Turns {
    taken: AtomicU32,
    made: AtomicU32,
}

/// The permission to make one connection, until it is dropped.
pub(crate) struct TakenTurn(Arc<Turns>);

impl Turns {
    /// A turn, unless all are taken.
    pub(crate) fn take(self: &Arc<Self>) -> Option<TakenTurn> {
        let one_more = |taken| (taken < MOST_AT_ONCE).then_some(taken + 1);
        let order = Ordering::Relaxed;
        self.taken.fetch_update(order, order, one_more).ok().map(|_| TakenTurn(Arc::clone(self)))
    }

    /// A connection was made; how many this PE has made by now.
    pub(crate) fn made(&self) -> u32 {
        self.made.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Drop for TakenTurn {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_free_again_once_it_is_dropped() {
        let turns = Arc::new(Turns::default());
        let mut taken: Vec<TakenTurn> = (0..MOST_AT_ONCE).filter_map(|_| turns.take()).collect();
        assert_eq!(taken.len(), MOST_AT_ONCE as usize);
        assert!(turns.take().is_none());
        taken.truncate(MOST_AT_ONCE as usize - 2);
        let again = [turns.take(), turns.take()];
        assert!(again.iter().all(Option::is_some) && turns.take().is_none());
        drop((taken, again));
        assert_eq!(turns.taken.load(Ordering::Relaxed), 0);
    }
}
