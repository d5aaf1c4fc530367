//! Unit tests of the decision of the service thread.

use super::*;

static LIMITS: WaitLimits = WaitLimits {
    max_unpolled: 2,
    ..WaitLimits::for_tests()
};
static WITHOUT_FLUSH: WaitLimits = WaitLimits {
    flushes_beside_sleepers: false,
    wakes_service: false,
    ..WaitLimits::for_tests()
};

const NOBODY: WaitingThreads = WaitingThreads {
    polls: 0,
    unpolled: Duration::ZERO,
    any_sleeping: false,
    any_waiting: false,
};
const POLL_OFTEN: WaitingThreads = WaitingThreads {
    polls: 1000,
    ..NOBODY
};
const POLL_RARELY: WaitingThreads = WaitingThreads { polls: 1, ..NOBODY };
const SLEEP: WaitingThreads = WaitingThreads {
    any_sleeping: true,
    ..NOBODY
};
const WAIT: WaitingThreads = WaitingThreads {
    any_waiting: true,
    ..NOBODY
};
const WAIT_AND_SLEEP: WaitingThreads = WaitingThreads {
    any_waiting: true,
    ..SLEEP
};
const WAIT_AND_POLL_RARELY: WaitingThreads = WaitingThreads {
    any_waiting: true,
    ..POLL_RARELY
};
/// The second sleep of a backoff.
const TWICE: Duration = FLUSH_DELAY.saturating_mul(2);

/// Returns the step of a first turn, unless a thread `stops_polling`.
fn first(
    limits: &'static WaitLimits,
    others: WaitingThreads,
    stops_polling: bool,
    longest: Duration,
) -> Step {
    Schedule::new(limits, false).next(others, || !stops_polling, || longest)
}

#[test]
fn it_polls_unless_others_do() {
    let max = Duration::MAX;
    let short = FLUSH_DELAY / 2;
    let table = [
        (&LIMITS, NOBODY, false, max, Step::Poll),
        (&LIMITS, POLL_OFTEN, false, max, Step::Sleep(TWICE)),
        (&LIMITS, POLL_OFTEN, false, short, Step::Sleep(short)),
        (&LIMITS, POLL_OFTEN, true, max, Step::Poll),
        (&LIMITS, POLL_RARELY, false, max, Step::Sleep(FLUSH_DELAY)),
        (&LIMITS, SLEEP, false, max, Step::Flush(TWICE)),
        (&LIMITS, SLEEP, true, max, Step::Poll),
        (&WITHOUT_FLUSH, SLEEP, false, max, Step::Sleep(TWICE)),
        (&LIMITS, WAIT, false, max, Step::Sleep(TWICE)),
        (&LIMITS, WAIT_AND_SLEEP, false, max, Step::Flush(TWICE)),
        (
            &LIMITS,
            WAIT_AND_POLL_RARELY,
            false,
            max,
            Step::Sleep(TWICE),
        ),
    ];

    for (row, (limits, others, stops_polling, longest, step)) in table.into_iter().enumerate() {
        let found = first(limits, others, stops_polling, longest);
        assert_eq!(found, step, "row {row}: {others:?}");
    }
}

#[test]
fn a_thread_that_stops_polling_counts_only_if_others_poll() {
    let step = Schedule::new(&LIMITS, false).next(
        NOBODY,
        || unreachable!("no other thread polls"),
        || Duration::MAX,
    );
    assert_eq!(step, Step::Poll);
}

#[test]
fn the_steps_follow_from_each_other() {
    let longest = WaitLimits::LONGEST;
    let often = (POLL_OFTEN, Step::Sleep(longest));
    let wait = (WAIT, Step::Sleep(longest));
    let turns: &[(WaitingThreads, Step)] = &[
        often,
        often,
        wait,
        // A long call has not polled for two turns, so the service thread polls; its sleeps stay
        // long.
        (WAIT, Step::Poll),
        wait,
        // No other thread waits or polls, so the sleeps are short again.
        (NOBODY, Step::Poll),
        (POLL_OFTEN, Step::Sleep(TWICE)),
        (POLL_OFTEN, Step::Sleep(2 * TWICE)),
        (POLL_RARELY, Step::Sleep(FLUSH_DELAY)),
    ];

    let mut schedule = Schedule::new(&LIMITS, false);
    for _ in 0..10 {
        schedule.next(POLL_OFTEN, || true, || Duration::MAX);
    }

    for (turn, &(others, step)) in turns.iter().enumerate() {
        let next = schedule.next(others, || true, || Duration::MAX);
        assert_eq!(next, step, "turn {turn}: {others:?}");
    }
}

#[test]
fn sleeps_grow_beside_threads_that_wait() {
    let us = Duration::from_micros;
    let ms = Duration::from_millis;
    let mut schedule = Schedule::new(&LIMITS, false);
    let mut sleep_beside = |polls, any_sleeping| {
        schedule.lengthen(WaitingThreads {
            polls,
            unpolled: ms(3),
            any_sleeping,
            ..NOBODY
        });
        schedule.sleep
    };

    assert_eq!(sleep_beside(7, false), FLUSH_DELAY, "too few polls");
    assert_eq!(sleep_beside(8, false), us(100));
    assert_eq!(sleep_beside(10, false), us(200));
    assert_eq!(sleep_beside(10, false), FLUSH_DELAY, "they poll less often");

    for _ in 0..9 {
        sleep_beside(u64::MAX, false);
    }
    assert_eq!(sleep_beside(u64::MAX, false), WaitLimits::LONGEST);
    assert_eq!(sleep_beside(0, true), ms(3), "as long as nobody has polled");
    assert_eq!(sleep_beside(1, true), ms(2));

    let mut schedule = Schedule::new(&LIMITS, true);
    schedule.lengthen(POLL_RARELY);
    assert_eq!(schedule.sleep, us(100), "a poll in 100 us is enough");
}
