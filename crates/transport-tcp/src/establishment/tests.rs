//! Two PEs claim connections to each other, and their messages are delivered in random order: they
//! end with exactly one connection.

use super::*;
use proptest::prelude::*;
use std::time::Duration;

/// A connection that one PE has made to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The claim is in flight.
    Claimed,
    /// The answer is in flight.
    Answered(Answer),
    /// The PE that made the connection has opened it, and its first request is in flight.
    Used,
    /// The PE that made the connection was welcomed, but has closed it before it was used.
    GivenUp,
}

/// A connection that a side has made.
#[derive(Debug)]
struct Made {
    by: usize,
    /// `None` once no message of the handshake is in flight.
    stage: Option<Stage>,
}

impl Made {
    /// Returns a connection on which the side `by` has sent its claim.
    fn claimed(by: usize) -> Made {
        Made {
            by,
            stage: Some(Stage::Claimed),
        }
    }
}

#[derive(Debug, Default)]
struct Side {
    establishment: Establishment,
    /// The index in [`made`](Pair::made) of the connection that is open at this PE.
    open: Option<usize>,
}

#[derive(Debug, Default)]
struct Pair {
    sides: [Side; 2],
    made: Vec<Made>,
}

impl Pair {
    /// Takes one step that `what` chooses: a side connects, gives up, or a message is delivered.
    fn step(&mut self, what: usize, now: Instant) {
        let side = what % 2;
        let own = self
            .made
            .iter()
            .rposition(|made| made.by == side && made.stage.is_some());

        match (what / 2 % 8, own) {
            (0, _) => {
                let Side {
                    establishment,
                    open,
                } = &mut self.sides[side];
                if open.is_none() && establishment.begin(now) {
                    self.made.push(Made::claimed(side));
                }
            }
            // The handshake takes too long: the side closes the connection and makes another one.
            // The peer finds the connection closed when the claim is delivered.
            (1, Some(own)) => {
                let stage = &mut self.made[own].stage;
                *stage = match stage {
                    Some(Stage::Claimed | Stage::Answered(Answer::Deferral)) => None,
                    Some(Stage::Answered(Answer::Welcome)) => Some(Stage::GivenUp),
                    _ => return,
                };
                self.made.push(Made::claimed(side));
            }
            (2.., _) if !self.made.is_empty() => self.deliver(what / 16 % self.made.len(), now),
            _ => {}
        }
    }

    /// Delivers the message that is in flight on a connection.
    fn deliver(&mut self, index: usize, now: Instant) {
        let maker = self.made[index].by;
        let other = 1 - maker;
        let Some(stage) = self.made[index].stage else {
            return;
        };

        self.made[index].stage = match stage {
            Stage::Claimed => {
                let Side {
                    establishment,
                    open,
                } = &mut self.sides[other];
                let answer = match open {
                    None => establishment.answer(Pe(other as u32), Pe(maker as u32)),
                    Some(_) => Answer::Deferral,
                };

                if answer == Answer::Welcome {
                    // An older connection of this side was reserved, and is dropped.
                    for made in &mut self.made {
                        if made.by == maker && made.stage == Some(Stage::GivenUp) {
                            made.stage = None;
                        }
                    }
                }
                Some(Stage::Answered(answer))
            }
            Stage::Answered(answer) => {
                let Side {
                    establishment,
                    open,
                } = &mut self.sides[maker];
                establishment.defer(now);

                match answer {
                    Answer::Welcome => {
                        assert_eq!(open.replace(index), None, "{self:?}");
                        Some(Stage::Used)
                    }
                    Answer::Deferral => None,
                }
            }
            Stage::Used => {
                assert_eq!(self.sides[other].open.replace(index), None, "{self:?}");
                None
            }
            Stage::GivenUp => {
                self.sides[other].establishment.release();
                None
            }
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn two_pes_end_with_one_connection(steps in prop::collection::vec(any::<usize>(), 0..60)) {
        let mut pair = Pair::default();
        let mut now = Instant::now();
        for step in steps {
            pair.step(step, now);
            now += Duration::from_millis(1);
        }

        // Both sides connect until they have a connection, and no handshake takes too long.
        for round in 0..100 {
            pair.step(round % 2, now);
            for index in 0..pair.made.len() {
                pair.deliver(index, now);
            }
        }

        let [a, b] = pair.sides.map(|side| side.open);
        prop_assert!(a.is_some() && a == b, "{a:?} {b:?}");
    }
}
