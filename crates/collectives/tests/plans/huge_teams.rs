//! Checks teams that are too large to simulate, up to the largest size that an index can number:
//! the plans of some members must match those of their peers.

use crate::call::Call::{self, Broadcast, DirectGatherTo, DirectScatter, ReduceTo};
use crate::schedule::Random;
use rushmem_collectives::{Partner, Step};
use std::collections::HashMap;

const SIZES: [u32; 9] = [
    1 << 20,
    (1 << 20) + 1,
    123_456_789,
    (1 << 31) - 1,
    1 << 31,
    (1 << 31) + 1,
    3 << 30,
    u32::MAX - 1,
    u32::MAX,
];

/// Maximum number of steps of a logarithmic plan: the largest team has 32 rounds and a fold, and no
/// plan takes more than seven steps in each. A linear plan takes far more.
const MAX_STEPS: usize = 7 * 33;

/// The signals of a member, by peer and edge.
#[derive(Default)]
struct Signals {
    /// The number that it sends.
    sent: HashMap<Partner, u32>,
    /// The number for which it waits.
    awaited: HashMap<Partner, u32>,
}

/// Returns the signals of `me` in a call.
fn signals(call: Call, n: u32, me: u32) -> Signals {
    let mut signals = Signals::default();
    for (index, step) in call.plan(n, me).enumerate() {
        assert!(
            index < MAX_STEPS,
            "{call:?} of {me} among {n} is not logarithmic"
        );
        match step {
            Step::Put { peer, .. } | Step::Signal { peer } => {
                *signals.sent.entry(peer).or_default() += 1;
            }
            Step::Wait { peer } => *signals.awaited.entry(peer).or_default() += 1,
            Step::Arrive { owner, .. }
            | Step::Contribute { owner }
            | Step::TakeCombined { owner }
            | Step::AwaitRelease { owner } => assert_eq!(owner, 0),
            Step::Copy { .. }
            | Step::Get { .. }
            | Step::PutDirect { .. }
            | Step::PutToOthers { .. }
            | Step::Reduce { .. }
            | Step::Direct(_) => {}
        }
    }
    signals
}

#[test]
fn what_a_member_sends_its_peers_take() {
    let mut random = Random(7);
    for n in SIZES {
        let middle = random.next() as u32 % n;
        for me in [0, 1, 2, n / 2, middle, n - 2, n - 1] {
            let root = random.next() as u32 % n;
            let calls = Call::ALL
                .into_iter()
                .filter(|call| call.fits(n) && call.is_logarithmic());
            let rooted = [root, me].map(|root| {
                [
                    Broadcast { root },
                    ReduceTo { root },
                    DirectGatherTo { root },
                    DirectScatter { root },
                ]
            });
            for call in calls.chain(rooted.into_iter().flatten()) {
                check_signals(call, n, me);
            }
        }
    }
}

/// Checks that the peers of `me` wait for what it sends, and send that for which it waits.
fn check_signals(call: Call, n: u32, me: u32) {
    let own = signals(call, n, me);
    for (&peer, count) in &own.sent {
        let from_me = Partner { index: me, ..peer };
        let awaited = signals(call, n, peer.index).awaited;
        let found = awaited.get(&from_me);
        assert_eq!(found, Some(count), "{call:?}: {me} to {peer:?} among {n}");
    }
    for (&peer, count) in &own.awaited {
        let to_me = Partner { index: me, ..peer };
        let sent = signals(call, n, peer.index).sent;
        let found = sent.get(&to_me);
        assert_eq!(found, Some(count), "{call:?}: {peer:?} to {me} among {n}");
    }
}
