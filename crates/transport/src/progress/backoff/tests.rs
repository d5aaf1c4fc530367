//! Unit tests of `backoff`.

use super::*;

/// Returns the numbers of spins and yields before the first sleep of a wait that finds no work.
fn polls_before_sleep(backoff: &mut Backoff) -> [u32; 2] {
    let mut polls = [0; 2];
    loop {
        match backoff.pause(false) {
            Pause::Spin => polls[0] += 1,
            Pause::Yield => polls[1] += 1,
            Pause::Sleep => return polls,
        }
    }
}

#[test]
fn a_waiter_yields_once_in_many_polls_and_sleeps_after_a_time() {
    for polled in [Polled::Words, Polled::Network] {
        let mut backoff = Backoff::new(polled, false);
        let before = Instant::now();
        let [spins, yields] = polls_before_sleep(&mut backoff);
        assert!(before.elapsed() > backoff.pace.yield_time);
        assert_eq!(spins, yields * (backoff.pace.polls_per_yield - 1));
    }
}

#[test]
fn a_waiter_that_keeps_its_peer_from_running_yields_after_each_poll() {
    let mut backoff = Backoff::new(Polled::Words, true);
    assert_eq!(polls_before_sleep(&mut backoff), [0, YIELDS]);

    let mut backoff = Backoff::new(Polled::Network, false);
    assert_eq!(backoff.pause(false), Pause::Spin);
    backoff.share_cpu(CpuSharing::Waiting);
    backoff.share_cpu(CpuSharing::Alone);
    let [spins, yields] = polls_before_sleep(&mut backoff);
    assert!(spins == 0 && yields > 0);
}

#[test]
fn a_waiter_that_shares_its_cpu_with_a_thread_that_computes_sleeps_and_does_not_yield() {
    for (polled, is_oversubscribed, spins) in [
        (Polled::Words, false, Pace::OF_WORDS.polls_per_yield - 1),
        (Polled::Words, true, 0),
        (Polled::Network, false, 0),
        (Polled::Network, true, 0),
    ] {
        let mut backoff = Backoff::new(polled, is_oversubscribed);
        backoff.share_cpu(CpuSharing::Computing);
        assert_eq!(polls_before_sleep(&mut backoff), [spins, 0]);
        assert_eq!(backoff.pause(false), Pause::Sleep);
    }
}

#[test]
fn a_waiter_sleeps_again_until_it_finds_work() {
    let mut backoff = Backoff::new(Polled::Network, true);
    assert_eq!(backoff.since_first_sleep(), Duration::ZERO);
    polls_before_sleep(&mut backoff);
    assert_eq!(backoff.pause(false), Pause::Sleep);
    assert_eq!(backoff.pause(true), Pause::Spin);
    assert_eq!(polls_before_sleep(&mut backoff), [0, YIELDS]);

    assert!(!backoff.has_slept_for_long() || backoff.since_first_sleep() > WaitLimits::LONGEST);
    std::thread::sleep(WaitLimits::LONGEST);
    assert!(backoff.has_slept_for_long(), "since its first sleep");
}
