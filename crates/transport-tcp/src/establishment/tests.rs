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

#[derive(Debug, Default)]
struct Side {
    establishment: Establishment,
    /// The index in [`made`](Pair::made) of the connection that is open at this PE.
    open: Option<usize>,
}

#[derive(Debug, Default)]
struct Pair {
    sides: [Side; 2],
    /// The side that made each connection, and the stage of the connection; `None` once no message
    /// of its handshake is in flight.
    made: Vec<(usize, Option<Stage>)>,
}

impl Pair {
    /// Takes one step that `what` chooses: a side connects, gives up, or a message is delivered.
    fn step(&mut self, what: usize, now: Instant) {
        let side = what % 2;
        let own = self
            .made
            .iter()
            .rposition(|&(by, stage)| by == side && stage.is_some());

        match (what / 2 % 8, own) {
            (0, _) => {
                let Side {
                    establishment,
                    open,
                } = &mut self.sides[side];
                if open.is_none() && establishment.begin(now) {
                    self.made.push((side, Some(Stage::Claimed)));
                }
            }
            // The handshake takes too long: the side closes the connection and makes another one.
            // The peer finds the connection closed when the claim is delivered.
            (1, Some(at)) => {
                self.made[at].1 = match self.made[at].1 {
                    Some(Stage::Claimed | Stage::Answered(Answer::Deferral)) => None,
                    Some(Stage::Answered(Answer::Welcome)) => Some(Stage::GivenUp),
                    _ => return,
                };
                self.made.push((side, Some(Stage::Claimed)));
            }
            (2.., _) if !self.made.is_empty() => self.deliver(what / 16 % self.made.len(), now),
            _ => {}
        }
    }

    /// Delivers the message that is in flight on a connection.
    fn deliver(&mut self, at: usize, now: Instant) {
        let (by, Some(stage)) = self.made[at] else {
            return;
        };

        let [maker, other] = [by, 1 - by];
        self.made[at].1 = match stage {
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
                    for (_, stage) in self.made.iter_mut().filter(|(by, _)| *by == maker) {
                        stage.take_if(|stage| *stage == Stage::GivenUp);
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
                        assert_eq!(open.replace(at), None, "{self:?}");
                        Some(Stage::Used)
                    }
                    Answer::Deferral => None,
                }
            }
            Stage::Used => {
                assert_eq!(self.sides[other].open.replace(at), None, "{self:?}");
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
            for at in 0..pair.made.len() {
                pair.deliver(at, now);
            }
        }

        let [a, b] = pair.sides.map(|side| side.open);
        prop_assert!(a.is_some() && a == b, "{a:?} {b:?}");
    }
}
