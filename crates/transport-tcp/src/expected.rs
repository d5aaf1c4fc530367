//! Predicts which peer sends next. Collectives and loops repeat themselves, so when a peer has
//! sent, the peer that sent next after it the last time is expected to do so again.
//!
//! A right prediction saves the system call that asks which sockets have events: without it a
//! barrier of 2 PEs takes 1.09 times as long over loopback, and a round trip of `shmem_put_signal`
//! 1.11 times.

use rushmem_transport::Pe;

/// The maximum length of a repeated pattern that is predicted: a barrier by dissemination of up to
/// 2^16 PEs, in which a PE receives from one peer in each of at most 16 rounds. A longer ring would
/// make each search longer.
const REMEMBERED: usize = 16;
/// One in this number of turns polls all peers, whatever the prediction. Otherwise a peer that
/// fetches a word of this PE in a loop would be predicted every time, and no other would be served.
const TURNS: u32 = 32;
/// The number of right predictions in a row after which the next one is used. After a wrong one,
/// the actual sender waits for a turn that polls all peers. If peers send at random, this costs
/// more time than right predictions save.
const RELIABLE: u32 = 3;

/// The last senders, in a ring, and the prediction.
#[derive(Default)]
pub(crate) struct Expected {
    peers: [Option<Pe>; REMEMBERED],
    /// The index of the last sender.
    last: usize,
    next: Option<Pe>,
    /// The number of right predictions since the last wrong one.
    n_right: u32,
    /// The number of turns, modulo [`TURNS`]; at 0 all peers are polled.
    turns: u32,
}

impl Expected {
    /// Records that data arrived from a peer.
    pub(crate) fn record(&mut self, pe: Pe) {
        self.n_right = if self.next == Some(pe) {
            self.n_right.saturating_add(1)
        } else {
            0
        };

        // The index at which `pe` was recorded the last time, if the ring still has it. The new
        // record may take the same place.
        let before = (0..REMEMBERED)
            .map(|back| (self.last + REMEMBERED - back) % REMEMBERED)
            .find(|&index| self.peers[index] == Some(pe));

        self.last = (self.last + 1) % REMEMBERED;
        self.peers[self.last] = Some(pe);

        // Predicts the peer that sent next after `pe` the last time.
        self.next = before.and_then(|index| self.peers[(index + 1) % REMEMBERED]);
    }

    /// Begins a turn. Returns the only peer to poll in it, or `None` if all are to be polled.
    pub(crate) fn begin_turn(&mut self) -> Option<Pe> {
        self.turns = (self.turns + 1) % TURNS;
        if self.turns == 0 || self.n_right < RELIABLE {
            return None;
        }
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of right predictions if peers send in this order, `times` times.
    fn foreseen(pattern: &[u32], times: usize) -> usize {
        let mut expected = Expected::default();
        let mut right = 0;
        for &pe in pattern.iter().cycle().take(pattern.len() * times) {
            right += usize::from(expected.next == Some(Pe(pe)));
            expected.record(Pe(pe));
        }
        right
    }

    #[test]
    fn what_repeats_itself_is_foreseen() {
        assert_eq!(foreseen(&[7], 10), 8, "after the same peer twice");
        assert_eq!(foreseen(&[1, 2], 10), 17);
        assert_eq!(foreseen(&[4, 1, 2, 8], 10), 35);

        let longest: Vec<u32> = (0..REMEMBERED as u32).collect();
        assert_eq!(foreseen(&longest, 10), 9 * REMEMBERED - 1);
        let long: Vec<u32> = (0..40).collect();
        assert_eq!(foreseen(&long, 10), 0, "longer than what is remembered");
    }

    #[test]
    fn a_peer_that_sends_without_end_leaves_turns_to_the_others() {
        let mut expected = Expected::default();
        let mut turns_of_all = 0;
        for _ in 0..10 * TURNS {
            turns_of_all += u32::from(expected.begin_turn().is_none());
            expected.record(Pe(7));
        }
        assert!(turns_of_all >= 10);
        assert!(turns_of_all <= 10 + RELIABLE + 2, "{turns_of_all}");
    }

    #[test]
    fn peers_that_send_at_random_are_polled_together() {
        let mut expected = Expected::default();
        let mut state = 1u64;
        let mut turns_of_one = 0;
        for _ in 0..1000 {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            turns_of_one += u32::from(expected.begin_turn().is_some());
            expected.record(Pe((state >> 33) as u32 % 3));
        }
        assert!(turns_of_one < 100, "{turns_of_one}");
    }
}
