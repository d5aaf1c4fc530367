//! Unit tests of `binomial`.

use super::*;

fn put(from: Place, peer: u32) -> Step {
    Step::Put { peer, from: from.at(0), to: Place::Dest.at(0), count: 1 }
}

#[test]
fn the_root_serves_the_largest_subtree_first() {
    let steps: Vec<_> = broadcast(6, 1, 1).collect();
    assert_eq!(steps, [put(Place::Source, 5), put(Place::Source, 3), put(Place::Source, 2)]);
}

#[test]
fn an_inner_member_passes_on_what_it_received() {
    let steps: Vec<_> = broadcast(6, 5, 1).collect();
    assert_eq!(steps, [Step::Wait { peer: 1 }, put(Place::Dest, 0)]);
}

#[test]
fn those_that_put_have_heard_from_those_they_put_to() {
    // Miri takes minutes for more.
    for n in 1..if cfg!(miri) { 8 } else { 40 } {
        for root in 0..n {
            for me in 0..n {
                let heard: Vec<u32> = arrivals(n, me, root).filter_map(waited_for).collect();
                let puts = broadcast(n, me, root).filter_map(|step| match step {
                    Step::Put { peer, .. } => Some(peer),
                    _ => None,
                });
                assert!(puts.into_iter().all(|peer| heard.contains(&peer)));
                for peer in heard {
                    let signal = Step::Signal { peer: me };
                    assert_eq!(arrivals(n, peer, root).filter(|s| *s == signal).count(), 1);
                }
            }
        }
    }
}

fn waited_for(step: Step) -> Option<u32> {
    match step {
        Step::Wait { peer } => Some(peer),
        _ => None,
    }
}

#[test]
fn a_sync_gathers_then_releases() {
    let steps: Vec<_> = gather_sync(8, 4).collect();
    assert_eq!(
        steps,
        [
            Step::Wait { peer: 5 },
            Step::Wait { peer: 6 },
            Step::Signal { peer: 0 },
            Step::Wait { peer: 0 },
            Step::Signal { peer: 6 },
            Step::Signal { peer: 5 },
        ]
    );
}

#[test]
fn one_member_has_nothing_to_do() {
    assert_eq!(broadcast(1, 0, 0).count(), 0);
    assert_eq!(gather_sync(1, 0).count(), 0);
}
