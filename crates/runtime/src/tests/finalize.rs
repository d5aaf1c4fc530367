//! What a PE finds out about peers that are in finalize while it waits for them, and the part of
//! finalize that waits for all PEs.

use super::kit::{Shape, TestPe, WORLD, job, without_requests};
use super::model::{Case, Collective as Call, OPERATORS, Place};
use crate::exit::finalize::synchronize;
use rushmem_communication::sync::finalizing::{self, EndlessWait, PeerCheck};
use rushmem_explain::status::{
    AwaitedObject, Collective, Finalizing, InFlight, Stage, Status, SymmetricLocation, Words,
};
use rushmem_explain::status_slot;
use rushmem_transport::Pe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Returns the other PE of two.
fn other(pe: TestPe) -> Pe {
    Pe(1 - pe.job().me.0)
}

/// Enters finalize, as the routine does before it waits for the other PE.
fn enter_finalize(pe: TestPe, entered: Vec<(u64, u64)>, n_in_flight: u64) {
    let status = Status {
        in_flight: Some(InFlight {
            n: n_in_flight,
            ..InFlight::default()
        }),
        finalizing: Some(Finalizing { entered }),
        ..Status::new(0, Stage::Initialized)
    };
    pe.area().write_status(&status_slot::encode(&status));
    finalizing::enter(pe.job(), pe.area());
}

/// Examines a wait of a PE twice. Returns what either has found.
fn examined_twice(pe: TestPe, subject: &AwaitedObject) -> [Option<EndlessWait<'_>>; 2] {
    let mut check = PeerCheck::default();
    [(); 2].map(|()| check.examine(pe.links(), subject))
}

/// Tells the other PE that this one has reached a step, and waits until that one has, too.
fn meet(pe: TestPe, step: u64) {
    let area = pe.area();
    area.raise(other(pe), area.areas().pair_flag(pe.job().me), step);
    let own = area.areas().pair_flag(other(pe));
    // Not by a wait of the library: if it takes long, that stores its own status over the one that
    // `enter_finalize` has stored.
    while area.flag(own) < step {
        thread::sleep(Duration::from_micros(100));
    }
}

/// Returns waits that only the PE `other` can end: for its message, for a lock behind it, and for a
/// word that no third PE writes.
fn waits_for(other: Pe) -> [AwaitedObject; 3] {
    let word = SymmetricLocation::Static { address: 0 };
    [
        AwaitedObject::Message { from: other.0 },
        AwaitedObject::Lock {
            lock: word,
            behind: Some(other.0),
        },
        AwaitedObject::Words(Words {
            words: Vec::new(),
            more: 0,
            all: false,
            comparison: "==".to_owned(),
        }),
    ]
}

/// Returns the `nth` collective on the team 7 of both PEs.
fn collective(nth: u64) -> AwaitedObject {
    AwaitedObject::Collective(Collective {
        team: "a team".to_owned(),
        is_active_set: false,
        number: 7,
        members: rushmem_explain::status::Members::Strided {
            start: 0,
            stride: 1,
            n: 2,
        },
        nth,
        awaited: None,
    })
}

#[test]
fn a_wait_for_a_pe_in_finalize_is_endless_once_it_was_examined_twice() {
    let _alone = without_requests();
    job(&Shape::of(&[2]), |pe| {
        // Both have been in a finalize before.
        enter_finalize(pe, Vec::new(), 0);
        meet(pe, 1);

        let subjects = waits_for(other(pe));
        if pe.job().me == Pe(0) {
            for subject in &subjects {
                let found = examined_twice(pe, subject);
                assert_eq!(found, [None, None], "PE 1 is not in another finalize");
            }
        }
        meet(pe, 2);

        if pe.job().me == Pe(1) {
            enter_finalize(pe, Vec::new(), 0);
        }
        meet(pe, 3);

        if pe.job().me == Pe(0) {
            let found = subjects
                .each_ref()
                .map(|subject| examined_twice(pe, subject));
            let endless = [
                EndlessWait::Message(1),
                EndlessWait::Lock(1),
                EndlessWait::Words,
            ];
            assert_eq!(found, endless.map(|wait| [None, Some(wait)]));
        }
    });
}

#[test]
fn a_pe_in_finalize_may_still_end_a_wait_by_operations_in_flight() {
    job(&Shape::of(&[2]), |pe| {
        if pe.job().me == Pe(1) {
            enter_finalize(pe, Vec::new(), 1);
        }
        meet(pe, 1);

        if pe.job().me == Pe(0) {
            for subject in &waits_for(other(pe)) {
                assert_eq!(examined_twice(pe, subject), [None, None]);
            }
        }
    });
}

#[test]
fn a_collective_is_endless_if_a_member_is_in_finalize_and_has_not_entered_it() {
    job(&Shape::of(&[2]), |pe| {
        if pe.job().me == Pe(1) {
            // It has entered three collectives on the team.
            enter_finalize(pe, vec![(5, 9), (7, 3)], 1);
        }
        meet(pe, 1);

        if pe.job().me == Pe(0) {
            assert_eq!(examined_twice(pe, &collective(3)), [None, None]);

            let next = collective(4);
            for endless in examined_twice(pe, &next) {
                let Some(EndlessWait::Collective(of, missing)) = endless else {
                    panic!("{endless:?}");
                };
                assert_eq!((of.nth, missing), (4, vec![1]));
            }
        }
    });
}

/// Each PE looks at the other one while both are in the same finalize, where each wait ends.
#[test]
fn no_wait_in_the_finalize_of_both_pes_is_endless() {
    job(&Shape::of(&[2]), |pe| {
        for turn in 1..=100 {
            enter_finalize(pe, vec![(7, 0)], 0);
            let [message, ..] = waits_for(other(pe));
            for subject in [message, collective(turn)] {
                let found = examined_twice(pe, &subject);
                assert_eq!(found, [None, None], "in finalize {turn}");
            }
            meet(pe, turn);
        }
    });
}

/// No PE leaves finalize before all have entered it, whatever they do first. The world then still
/// serves another round.
#[test]
fn no_pe_leaves_finalize_early() {
    for shape in [
        Shape::of(&[5]),
        Shape::of(&[3, 2]),
        Shape::over_tcp(&[2, 1]),
        Shape::of(&[3]).threads(),
    ] {
        let n_pes = shape.n_pes();
        let entered = Arc::new(AtomicU32::new(0));
        job(&shape.late(1), move |pe| {
            let members: Vec<usize> = (0..pe.n()).collect();
            for round in 1..=20 {
                let place = Place {
                    team: WORLD,
                    members: &members,
                    source: 0,
                    dest: 4096,
                };
                Case::of(Call::Reduce(&OPERATORS[0]), 3, u64::from(round)).run(pe, place);

                entered.fetch_add(1, SeqCst);
                synchronize(pe.enter_pe());
                assert!(entered.load(SeqCst) >= n_pes * round, "round {round}");
            }
        });
    }
}
