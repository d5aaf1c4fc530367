//! Checks teams that are too large to simulate, up to the largest size that an index can number:
//! the plans of some members must match those of their peers.

use crate::call::Call::{self, Broadcast};
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

/// Returns the numbers of signals that `me` sends to each peer and waits for from each, by edge.
fn signals(call: Call, n: u32, me: u32) -> (HashMap<Partner, u32>, HashMap<Partner, u32>) {
    let (mut sent, mut taken) = (HashMap::new(), HashMap::new());
    for (count, step) in call.plan(n, me).enumerate() {
        assert!(
            count < 7 * 33,
            "{call:?} of {me} among {n} is not logarithmic"
        );
        match step {
            Step::Put { peer, .. } | Step::Signal { peer } => *sent.entry(peer).or_default() += 1,
            Step::Wait { peer } => *taken.entry(peer).or_default() += 1,
            Step::Arrive { at }
            | Step::Contribute { at }
            | Step::TakeCombined { at }
            | Step::AwaitRelease { at } => assert_eq!(at, 0),
            Step::Copy { .. }
            | Step::Get { .. }
            | Step::Reduce { .. }
            | Step::ReduceDirect { .. }
            | Step::ScanDirect { .. } => {}
        }
    }
    (sent, taken)
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
            for call in calls.chain([Broadcast { root }, Broadcast { root: me }]) {
                let (sent, taken) = signals(call, n, me);
                for (&peer, count) in &sent {
                    let own = Partner { index: me, ..peer };
                    let matching = signals(call, n, peer.index).1.get(&own).copied();
                    assert_eq!(
                        matching,
                        Some(*count),
                        "{call:?}: {me} to {peer:?} among {n}"
                    );
                }
                for (&peer, count) in &taken {
                    let own = Partner { index: me, ..peer };
                    let matching = signals(call, n, peer.index).0.get(&own).copied();
                    assert_eq!(
                        matching,
                        Some(*count),
                        "{call:?}: {peer:?} to {me} among {n}"
                    );
                }
            }
        }
    }
}
