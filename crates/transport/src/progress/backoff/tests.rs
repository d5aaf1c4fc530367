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
    let mut backoff = Backoff::new(3, false, true);
    assert_eq!(backoff.since_first_sleep(), Duration::ZERO);
    assert_eq!(pauses(&mut backoff, 105), [3, 100, 2]);
    backoff.renew();
    assert_eq!(backoff.pause(), Pause::Spin);
    assert!(
        backoff.since_first_sleep() > Duration::ZERO,
        "renewed or not, it has slept"
    );
    let mut backoff = Backoff::new(3, true, true);
    assert_eq!(pauses(&mut backoff, 25), [0, 20, 5]);
}

#[test]
fn a_wait_that_sleeps_for_long_is_reported_more_and_more_seldom() {
    let mut backoff = Backoff::new(0, true, true);
    assert!(
        !backoff.begin_report() && !backoff.is_reported(),
        "it has not slept"
    );
    assert_eq!(pauses(&mut backoff, 21), [0, 20, 1]);
    std::thread::sleep(LONG);
    assert!(backoff.begin_report() && backoff.is_reported());
    let report_after = backoff.report_after;
    assert!(report_after >= 2 * LONG);
    std::thread::sleep(report_after);
    assert!(backoff.begin_report());
    assert!(backoff.report_after >= 2 * report_after);
}

#[test]
fn a_waiter_that_spins_for_long_lets_others_run() {
    let mut backoff = Backoff::new(1000, false, true);
    let yields = (0..1000)
        .filter(|_| backoff.pause() == Pause::Yield)
        .count();
    assert_eq!(yields, 1000 / 128);
}

#[test]
fn a_waiter_that_shares_its_cpu_sleeps_at_once_if_it_will_be_woken() {
    for (is_woken, yields) in [(true, 0), (false, 20)] {
        let mut backoff = Backoff::new(1000, false, is_woken);
        assert_eq!(backoff.pause(), Pause::Spin);
        backoff.share_cpu(CpuSharing::Computing);
        backoff.renew();
        assert_eq!(pauses(&mut backoff, 25), [0, yields, 25 - yields]);
    }
}

#[test]
fn a_waiter_that_shares_its_cpu_with_one_that_waits_yields_after_each_poll() {
    let mut backoff = Backoff::new(1000, false, true);
    assert_eq!(backoff.pause(), Pause::Spin);
    backoff.share_cpu(CpuSharing::Waiting);
    assert_eq!(pauses(&mut backoff, 1200), [0, 1099, 101]);
}
