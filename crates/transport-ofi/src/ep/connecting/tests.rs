//! Unit tests of the states of a connection.

use super::*;

const PE: u32 = 3;
const LIMIT: Duration = Duration::from_secs(2);
const REFUSED: i32 = -fi::FI_ECONNREFUSED;

fn connections(connects: bool) -> Connections {
    Connections::new(connects, LIMIT, Arc::default())
}

#[test]
fn a_pe_is_connected_by_one_message() {
    let mut connections = connections(true);
    let now = Instant::now();
    for _ in 0..2 {
        assert_eq!(
            connections.next(PE, now),
            NextStep::Ask,
            "the provider has not accepted the message"
        );
        assert_eq!(connections.permits.n_left(), MAX_AT_ONCE - 1);
    }

    connections.record_asked(PE);
    assert_eq!(connections.next(PE, now), NextStep::Wait);
    assert_eq!(connections.permits.n_left(), MAX_AT_ONCE - 1);

    connections.record_connected(PE);
    assert_eq!(connections.permits.n_left(), MAX_AT_ONCE);
    assert!(connections.entries.is_empty(), "nothing is left to know");
}

#[test]
fn a_provider_without_connections_begins_at_once() {
    let mut connections = connections(false);
    let now = Instant::now();
    assert_eq!(connections.next(PE, now), NextStep::Begin);
    assert_eq!(connections.permits.n_left(), MAX_AT_ONCE);
}

#[test]
fn a_refused_connection_is_tried_again_after_pauses_until_the_limit() {
    let mut connections = connections(true);
    let start = Instant::now();
    let mut now = start;
    let mut refusals = 0;
    loop {
        assert_eq!(connections.next(PE, now), NextStep::Ask);
        connections.record_asked(PE);

        let is_tried_again = connections.refuse_connection(PE, REFUSED, "refused", now);
        refusals += 1;
        assert_eq!(connections.permits.n_left(), MAX_AT_ONCE, "none is kept");
        if !is_tried_again {
            break;
        }

        assert_eq!(connections.next(PE, now), NextStep::Wait, "a pause");
        now = connections
            .of(PE)
            .and_then(|of| of.refused.as_ref())
            .expect("refused")
            .next();
    }
    assert!(now - start >= LIMIT);

    let attempts = connections.refused(PE, REFUSED).expect("it was refused");
    assert_eq!(attempts.n(), refusals);
    assert!(connections.refused(PE, -fi::FI_EINVAL).is_none());

    assert!(
        connections.refuse_connection(PE + 1, REFUSED, "refused", now),
        "each PE has its own attempts"
    );
    assert!(
        connections.refuse_connection(PE, REFUSED, "refused", now + 2 * LIMIT),
        "it was reached meanwhile"
    );
}

#[test]
fn a_refused_operation_is_tried_again_without_a_message() {
    let mut connections = connections(true);
    let now = Instant::now();
    assert!(connections.refuse_operation(PE, REFUSED, "refused", now));
    assert_eq!(connections.next(PE, now), NextStep::Wait, "a pause");
    assert_eq!(connections.next(PE, now + LIMIT), NextStep::Begin);
}

#[test]
fn only_some_codes_mean_that_there_is_no_connection() {
    let mut connections = connections(true);
    let now = Instant::now();
    assert!(!connections.refuse_connection(PE, -fi::FI_EINVAL, "invalid", now));
    assert!(!connections.refuse_operation(PE, -fi::FI_EINVAL, "invalid", now));

    let reset = -fi::FI_ECONNRESET;
    assert!(
        !connections.refuse_operation(PE, reset, "reset", now),
        "a connection that was used is lost"
    );
    assert!(connections.refuse_connection(PE, reset, "reset", now));
}

#[test]
fn peers_that_do_not_answer_lose_their_permits() {
    let mut connections = connections(true);
    let now = Instant::now();
    for pe in 0..MAX_AT_ONCE {
        assert_eq!(connections.next(pe, now), NextStep::Ask);
    }
    assert_eq!(
        connections.next(9, now),
        NextStep::Wait,
        "all permits are taken"
    );

    let later = now + LIMIT / 2;
    for pe in 0..MAX_AT_ONCE {
        assert_eq!(connections.next(pe, later), NextStep::Ask);
    }
    assert_eq!(connections.next(9, later), NextStep::Ask);
}
