//! Unit tests of `backoff`.

use super::*;

/// Returns the numbers of spins, yields and sleeps in this order among `n` pauses.
fn pauses(backoff: &mut Backoff, n: usize) -> [usize; 3] {
    let pauses: Vec<Pause> = (0..n).map(|_| backoff.pause()).collect();
    assert!(pauses.is_sorted_by_key(|pause| *pause as u8), "{pauses:?}");
    [Pause::Spin, Pause::Yield, Pause::Sleep]
        .map(|kind| pauses.iter().filter(|p| **p == kind).count())
}

#[test]
fn a_waiter_spins_then_yields_then_sleeps() {
    let mut backoff = Backoff::new(3, false);
    assert_eq!(backoff.since_first_sleep(), Duration::ZERO);
    assert_eq!(pauses(&mut backoff, 105), [3, 100, 2]);
    backoff.renew();
    assert_eq!(backoff.pause(), Pause::Spin);
    assert!(backoff.since_first_sleep() > Duration::ZERO, "renewed or not, it has slept");
    let mut backoff = Backoff::new(3, true);
    assert_eq!(pauses(&mut backoff, 25), [0, 20, 5]);
}

#[test]
fn a_wait_that_sleeps_for_long_is_reported_more_and_more_seldom() {
    let mut backoff = Backoff::new(0, true);
    assert!(!backoff.is_report_due() && !backoff.is_reported(), "it has not slept");
    assert_eq!(pauses(&mut backoff, 21), [0, 20, 1]);
    std::thread::sleep(LONG);
    assert!(backoff.is_report_due() && backoff.is_reported());
    let report_after = backoff.report_after;
    assert!(report_after >= 2 * LONG);
    std::thread::sleep(report_after);
    assert!(backoff.is_report_due());
    assert!(backoff.report_after >= 2 * report_after);
}

#[test]
fn a_waiter_that_spins_for_long_lets_others_run() {
    let mut backoff = Backoff::new(1000, false);
    let yields = (0..1000).filter(|_| backoff.pause() == Pause::Yield).count();
    assert_eq!(yields, 1000 / 128);
}

#[test]
fn sleeps_grow_beside_threads_that_wait() {
    let us = Duration::from_micros;
    let ms = Duration::from_millis;
    let limits = WaitLimits::for_tests();
    let mut backoff = ServiceBackoff::new(&limits, false);
    assert_eq!(backoff.while_others_poll(7, false), FLUSH_DELAY, "they pass by");
    assert_eq!(backoff.while_others_poll(8, false), us(100));
    assert_eq!(backoff.while_others_poll(10, false), us(200));
    assert_eq!(backoff.while_others_poll(10, false), FLUSH_DELAY, "they poll less often");
    for _ in 0..9 {
        backoff.while_others_poll(u64::MAX, false);
    }
    assert_eq!(backoff.while_others_poll(u64::MAX, false), WaitLimits::LONGEST);
    assert_eq!(backoff.while_others_poll(0, true), ms(4));
    assert_eq!(backoff.while_others_poll(1, true), ms(2));
    assert_eq!(backoff.limit(ms(1)), ms(1));
    backoff.reset();
    assert_eq!(backoff.while_others_poll(0, true), us(100));
    let mut backoff = ServiceBackoff::new(&limits, true);
    assert_eq!(backoff.while_others_poll(1, false), us(100), "a poll in 100 us is enough");
}
