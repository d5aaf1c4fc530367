//! The ledger of an origin against a target that answers in order.

use crate::proto::{ExpectedReply, Ledger, ReplyFrame};
use proptest::prelude::*;
use rushmem_transport::peers::loss::Violation;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A request without an answer.
    Silent,
    /// A request with an answer.
    Asking(ExpectedReply),
    /// A request for an acknowledgment of all requests, unless an expected answer covers them.
    Sync,
    /// The target answers the oldest unanswered request.
    Answer,
    /// The target answers what was not requested.
    Lie,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Silent),
        2 => (1..100u32).prop_map(|nbytes| Step::Asking(ExpectedReply::Data(nbytes))),
        2 => Just(Step::Asking(ExpectedReply::Message)),
        2 => Just(Step::Sync),
        5 => Just(Step::Answer),
        1 => Just(Step::Lie),
    ]
}

fn answer(want: ExpectedReply, seq: u64) -> ReplyFrame {
    match want {
        ExpectedReply::Data(nbytes) => ReplyFrame::Data { seq, nbytes },
        ExpectedReply::Message => ReplyFrame::Message { nbytes: 24 },
        ExpectedReply::Ack => ReplyFrame::Ack { seq },
    }
}

/// Returns an answer that does not fit.
fn lie(want: ExpectedReply, seq: u64) -> ReplyFrame {
    match want {
        ExpectedReply::Data(nbytes) => ReplyFrame::Data {
            seq,
            nbytes: nbytes + 1,
        },
        ExpectedReply::Message => ReplyFrame::Ack { seq },
        ExpectedReply::Ack => ReplyFrame::Ack { seq: seq + 1 },
    }
}

proptest! {
    #[test]
    fn answers_acknowledge_all_before_them(steps in prop::collection::vec(step(), 1..200)) {
        let mut ledger = Ledger::new();
        // The model: the unanswered requests, and the number of the last answered one.
        let mut unanswered: Vec<(ExpectedReply, u64)> = Vec::new();
        let mut issued = 0;
        let mut answered = 0;

        for step in steps {
            match step {
                Step::Silent => {
                    issued += 1;
                    prop_assert_eq!(ledger.issue(), issued);
                }
                Step::Asking(want) => {
                    issued += 1;
                    prop_assert_eq!(ledger.expect(want, issued), issued);
                    unanswered.push((want, issued));
                }
                Step::Sync => {
                    let covered = answered >= issued
                        || unanswered.last().is_some_and(|&(_, seq)| seq >= issued);
                    prop_assert_eq!(ledger.will_ack(issued), covered);
                    if !covered {
                        issued += 1;
                        ledger.expect(ExpectedReply::Ack, issued);
                        unanswered.push((ExpectedReply::Ack, issued));
                    }
                }
                Step::Answer => {
                    if unanswered.is_empty() {
                        prop_assert_eq!(ledger.complete(ReplyFrame::Ack { seq: 1 }), Err(Violation::Unrequested));
                        continue;
                    }

                    let (want, seq) = unanswered.remove(0);
                    if let ExpectedReply::Data(nbytes) = want {
                        prop_assert_eq!(ledger.data(seq, nbytes), Ok(&seq));
                    }
                    prop_assert_eq!(ledger.message().is_ok(), want == ExpectedReply::Message);
                    prop_assert_eq!(ledger.complete(answer(want, seq)), Ok(seq));
                    answered = seq;
                }
                Step::Lie => {
                    let reply = match unanswered.first() {
                        Some(&(want, seq)) => lie(want, seq),
                        None => ReplyFrame::Ack { seq: 1 },
                    };

                    if let ReplyFrame::Data { seq, nbytes } = reply {
                        prop_assert_eq!(ledger.data(seq, nbytes), Err(Violation::Unrequested));
                    }
                    prop_assert_eq!(ledger.complete(reply), Err(Violation::Unrequested));
                    // The connection is closed after that.
                    return Ok(());
                }
            }

            prop_assert_eq!(ledger.acked(), answered);
            prop_assert_eq!(ledger.n_unanswered(), unanswered.len());
        }
    }
}
