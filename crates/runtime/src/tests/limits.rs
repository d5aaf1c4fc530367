//! Waits with a limit: they end by it, change nothing, and see what has come by then.
#![allow(unsafe_code)]

use super::kit::lateness::before_step;
use super::kit::{CALL, Shape, TestPe, WORLD, job, with_requests};
use super::model::{Case, Collective, OPERATORS, Place};
use crate::api::limits::TimedOut;
use crate::api::requests::wait_within;
use crate::api::wait::{
    Values, wait_until_all_within, wait_until_any_within, wait_until_some_within, wait_until_within,
};
use rushmem_communication::status::WaitDescription;
use rushmem_communication::sync::waits;
use rushmem_explain::status::AwaitedObject;
use rushmem_explain::status_slot;
use rushmem_pe::constants::{SHMEM_CMP_EQ, SHMEM_CMP_GE};
use rushmem_pe::job::handle::{RequestHandle, TeamHandle};
use rushmem_pe::memory::range::symmetric;
use rushmem_transport::Pe;
use std::cell::Cell;
use std::ptr::null;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

/// Shorter than the time for which a wait polls, than a nap, and than the time after which a wait
/// is shown; and longer.
const LIMITS: [Duration; 4] = [
    Duration::from_nanos(1),
    Duration::from_micros(30),
    Duration::from_millis(3),
    Duration::from_millis(25),
];
/// A limit that no test reaches.
const NEVER: Option<Duration> = Some(Duration::from_secs(3600));

fn word(pe: TestPe, index: usize) -> *mut u64 {
    pe.at(index * 8).cast()
}

/// Returns a word of a PE, as another one of its node reaches it.
fn word_on(pe: TestPe, other: usize, index: usize) -> &'static AtomicU64 {
    let range = symmetric(pe.job(), CALL, "a word", word(pe, index).cast(), 8);
    let there = range.on(Pe(other as u32)).expect("it is mapped");
    // SAFETY: the word is in the heap of that PE, which is mapped until the thread ends, and is
    // only accessed by atomic operations.
    unsafe { AtomicU64::from_ptr(there.cast()) }
}

/// Waits for a word of this PE to be `value` or more.
fn until(pe: TestPe, index: usize, value: u64, limit: Option<Duration>) -> Result<u64, TimedOut> {
    // SAFETY: the word is in the heap.
    unsafe { wait_until_within(pe, word(pe, index), SHMEM_CMP_GE, value, limit) }
}

fn describe() -> WaitDescription {
    WaitDescription {
        call: CALL,
        subject: AwaitedObject::Exit,
    }
}

/// Each way to wait ends by each limit, not before it, and once more looks at what it waits for.
#[test]
fn a_wait_ends_by_its_limit_and_then_looks_once_more() {
    let ways = [waits::until_seen_within, waits::until_asked_within];
    for shape in [Shape::of(&[2]), Shape::over_tcp(&[1, 1])] {
        job(&shape, move |pe| {
            for (limit, way) in LIMITS
                .into_iter()
                .flat_map(|limit| ways.map(|way| (limit, way)))
            {
                let began = Instant::now();
                let is_seen = way(pe.links(), Some(limit), &describe, &mut || false);
                assert!(!is_seen && began.elapsed() >= limit, "{limit:?}");

                // The limit passes during the third look, the first one after the clock was read.
                let mut n_looks = 0;
                let mut comes_with_the_limit = || {
                    n_looks += 1;
                    if n_looks == 3 {
                        sleep(limit);
                    }
                    n_looks > 3
                };
                let is_seen = way(
                    pe.links(),
                    Some(limit),
                    &describe,
                    &mut comes_with_the_limit,
                );
                assert!(is_seen, "{limit:?}");
            }

            let never_set = AtomicU32::new(0);
            for limit in LIMITS {
                let began = Instant::now();
                let is_set = waits::until_set(pe.links(), Some(limit), &never_set, describe);
                assert!(!is_set && began.elapsed() >= limit, "{limit:?}");
            }
        });
    }
}

/// A limit of 0 looks once without a network, and once more after progress over one.
#[test]
fn a_limit_of_zero_does_not_wait() {
    for (shape, due) in [(Shape::of(&[2]), 1), (Shape::over_tcp(&[1, 1]), 2)] {
        job(&shape, move |pe| {
            let n_looks = Cell::new(0);
            let zero = Some(Duration::ZERO);
            let mut look = || {
                n_looks.set(n_looks.get() + 1);
                false
            };
            assert!(!waits::until_seen_within(
                pe.links(),
                zero,
                &describe,
                &mut look
            ));
            assert_eq!(n_looks.get(), due);
            assert_eq!(until(pe, 0, 0, zero), Ok(0));
            assert_eq!(until(pe, 0, 1, zero), Err(TimedOut));
            pe.sync_all();
        });
    }
}

/// The limits of 2,000 waits for the words of a ring pass at any time, and no change is lost.
#[test]
fn nothing_is_lost_when_waits_are_repeated() {
    const TURNS: u64 = 500;
    let n_timed_out = job(&Shape::of(&[4]).late(15), |pe| {
        let next = (pe.me() + 1) % pe.n();
        let mut n_timed_out = 0;
        for turn in 1..=TURNS {
            before_step();
            let limit = Some(Duration::from_nanos(turn % 7 * 20_000));
            if pe.me() == 0 {
                word_on(pe, next, turn as usize % 3).store(turn, SeqCst);
            }
            loop {
                match until(pe, turn as usize % 3, turn, limit) {
                    Ok(value) => break assert_eq!(value, turn),
                    Err(TimedOut) => n_timed_out += 1,
                }
                // PEs outnumber the CPUs.
                yield_now();
            }
            if pe.me() > 0 {
                word_on(pe, next, turn as usize % 3).store(turn, SeqCst);
            }
        }
        n_timed_out
    });
    let n_timed_out: u32 = n_timed_out.into_iter().sum();
    assert!(n_timed_out >= 20, "{n_timed_out} limits have passed");
}

/// Sets of words, some of which the next PE sets.
#[test]
fn sets_of_words_have_limits() {
    job(&Shape::of(&[2]).late(16), |pe| {
        let (words, wanted) = (word(pe, 0), [1_u64, 2, 3]);
        let (values, none) = (Values::Each(wanted.as_ptr()), null());
        let limit = Some(LIMITS[2]);
        let other = 1 - pe.me();
        let mut indices = [9; 3];
        let into = indices.as_mut_ptr();

        // SAFETY: the words are in the heap, and the arrays have an element for each.
        let all = |limit| unsafe {
            wait_until_all_within(pe, words, 3, none, SHMEM_CMP_EQ, values, limit)
        };
        // SAFETY: as above.
        let any = |limit| unsafe {
            wait_until_any_within(pe, words, 3, none, SHMEM_CMP_EQ, values, limit)
        };
        // SAFETY: as above; there is room for three indices.
        let some = |limit| unsafe {
            wait_until_some_within(pe, words, 3, into, none, SHMEM_CMP_EQ, values, limit)
        };

        assert_eq!(all(limit), Err(TimedOut));
        assert_eq!(any(limit), Err(TimedOut));
        assert_eq!(some(limit), Err(TimedOut));
        pe.sync_all();

        word_on(pe, other, 1).store(2, SeqCst);
        assert_eq!(any(NEVER), Ok(1));
        assert_eq!(some(NEVER), Ok(1));
        assert_eq!(all(limit), Err(TimedOut));
        pe.sync_all();

        word_on(pe, other, 0).store(1, SeqCst);
        word_on(pe, other, 2).store(3, SeqCst);
        assert_eq!(all(NEVER), Ok(()));
        assert_eq!(some(Some(Duration::ZERO)), Ok(3));

        let excluded = [1; 3];
        // SAFETY: as above.
        let empty = unsafe {
            wait_until_any_within(pe, words, 3, excluded.as_ptr(), SHMEM_CMP_EQ, values, limit)
        };
        assert_eq!(empty, Ok(usize::MAX));
        pe.sync_all();
        assert_eq!(indices, [0, 1, 2]);
    });
}

/// A collective that PE 0 starts last stays in flight on the others, whose limits pass.
#[test]
fn a_request_stays_when_the_limit_of_its_wait_passes() {
    let _requests = with_requests();
    let shapes = [
        Shape::of(&[3]),
        Shape::of(&[3]).threads(),
        Shape::over_tcp(&[2, 1]),
    ];
    for shape in shapes {
        let n_timed_out = AtomicU64::new(0);
        job(&shape.late(17), move |pe| {
            assert_eq!(wait_within(pe, RequestHandle::NULL, NEVER), Ok(0));
            let members: Vec<usize> = (0..pe.n()).collect();
            for turn in 1..=10 {
                let case = Case {
                    collective: Collective::Reduce(&OPERATORS[0]),
                    nelems: 5,
                    elem_bytes: 8,
                    salt: turn,
                    is_in_place: false,
                };
                let place = Place {
                    team: WORLD,
                    members: &members,
                    source: 0,
                    dest: case.room(pe.n()),
                };
                let place = case.prepare(pe, place);

                // PE 0 starts when the limits of all others have passed.
                while pe.me() == 0 && n_timed_out.load(SeqCst) < turn * (pe.n() - 1) as u64 {
                    yield_now();
                }
                let started = case.start(pe, TeamHandle::WORLD, place);
                let request = started.expect("it has a non-blocking form");
                if pe.me() > 0 {
                    for limit in [Duration::ZERO, LIMITS[1], LIMITS[2]] {
                        assert_eq!(wait_within(pe, request, Some(limit)), Err(TimedOut));
                    }
                    n_timed_out.fetch_add(1, SeqCst);
                }

                while wait_within(pe, request, Some(LIMITS[1])).is_err() {}
                case.check(pe, place);
                pe.sync_all();
            }
        });
    }
}

/// The status of a PE shows the limit of its wait.
#[test]
fn a_status_shows_the_limit_of_a_wait() {
    job(&Shape::of(&[2]), |pe| {
        if pe.me() == 1 {
            assert_eq!(until(pe, 0, 1, NEVER), Ok(1));
            return;
        }

        let slot = pe.area().areas().status();
        let limit = loop {
            let status = status_slot::read(|nbytes| Some(pe.area().bytes_of(Pe(1), slot, nbytes)));
            let wait = status.and_then(|status| status.waits.into_iter().next());
            if let Some(wait) = wait {
                break wait.limit;
            }
            yield_now();
        };
        assert_eq!(limit, NEVER.map(|limit| limit.as_nanos() as u64));
        word_on(pe, 1, 0).store(1, SeqCst);
    });
}
