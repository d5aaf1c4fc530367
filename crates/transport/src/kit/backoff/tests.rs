//! Unit tests of `backoff`.

use super::*;

const LIMITS: BackoffLimits = BackoffLimits { spins: 3, yields: 2, yields_oversubscribed: 1 };

fn first_pauses(backoff: &mut Backoff) -> [Pause; 6] {
    std::array::from_fn(|_| backoff.pause())
}

#[test]
fn a_waiter_spins_then_yields_then_sleeps() {
    use Pause::{Sleep, Spin, Yield};
    let mut backoff = Backoff::new(LIMITS, false);
    assert_eq!(backoff.since_asleep(), Duration::ZERO);
    assert_eq!(first_pauses(&mut backoff), [Spin, Spin, Spin, Yield, Yield, Sleep]);
    backoff.renew();
    assert_eq!(backoff.pause(), Spin);
    assert!(backoff.since_asleep() > Duration::ZERO, "renewed or not, it has slept");
    backoff.forget_sleep();
    assert_eq!(backoff.since_asleep(), Duration::ZERO);
    let mut backoff = Backoff::new(LIMITS, true);
    assert_eq!(first_pauses(&mut backoff), [Yield, Sleep, Sleep, Sleep, Sleep, Sleep]);
}

#[test]
fn a_waiter_that_spins_for_long_lets_others_run() {
    let limits = BackoffLimits { spins: 1000, ..LIMITS };
    let mut backoff = Backoff::new(limits, false);
    let yields = (0..1000).filter(|_| backoff.pause() == Pause::Yield).count();
    assert_eq!(yields, 1000 / 128);
}

#[test]
fn sleeps_grow_beside_threads_that_wait() {
    let us = Duration::from_micros;
    let limits = ServiceBackoffLimits {
        shortest: us(50),
        often: us(10),
        min_polls: 8,
        longest: us(300),
        longest_asleep: us(1000),
    };
    let mut backoff = ServiceBackoff::new(limits);
    assert_eq!(backoff.while_others_poll(7, false), us(50), "they pass by");
    assert_eq!(backoff.while_others_poll(8, false), us(100));
    assert_eq!(backoff.while_others_poll(10, false), us(200));
    assert_eq!(backoff.while_others_poll(10, false), us(50), "they poll less often");
    backoff.while_others_poll(100, false);
    backoff.while_others_poll(100, false);
    assert_eq!(backoff.while_others_poll(100, false), us(300));
    assert_eq!(backoff.while_others_poll(0, true), us(600));
    assert_eq!(backoff.while_others_poll(1, true), us(300));
    assert_eq!(backoff.longer(us(500)), us(500));
    assert_eq!(backoff.limit(us(400)), us(400));
    backoff.reset();
    assert_eq!(backoff.while_others_poll(0, true), us(100));
}
