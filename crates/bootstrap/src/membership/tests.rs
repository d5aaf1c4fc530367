//! Memberships against a real server, over socket pairs inside one process.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Barrier, mpsc};
use std::thread;

use super::*;
use crate::launcher::{Decision, Server};

/// Runs `body` as each of `n_pes` PEs, and a server for them until all are done or the job ends.
/// Returns how it ended.
fn job(n_pes: u32, body: impl Fn(Membership) + Sync) -> Option<Decision> {
    let (pairs, peers): (Vec<_>, Vec<_>) = (0..n_pes)
        .map(|_| UnixStream::pair().expect("a pair"))
        .unzip();
    let (pieces, received) = mpsc::channel();

    thread::scope(|scope| {
        for peer in peers {
            let body = &body;
            scope.spawn(move || {
                let oshrun = OshrunMembership::join(peer, memory()).expect("welcome");
                body(Membership(MembershipKind::Oshrun(oshrun)));
            });
        }

        // A thread for each PE reads what it sends. The server handles the pieces one by one.
        for (pe, pair) in pairs.iter().enumerate() {
            let pieces = pieces.clone();
            scope.spawn(move || {
                let mut bytes = [0; 100];
                while let Ok(nbytes @ 1..) = { pair }.read(&mut bytes) {
                    pieces
                        .send((pe as u32, bytes[..nbytes].to_vec()))
                        .expect("the server outlives its readers");
                }
            });
        }
        // The loop below ends with the last reader.
        drop(pieces);

        let nodes = NodeMap::one_node(n_pes).expect("PEs");
        let mut server = Server::new(nodes, vec!["a".to_string()]);
        let mut end = None;
        for (pe, bytes) in received {
            let mut decisions = server.received(pe, &bytes);
            decisions.extend(server.take_messages());
            for decision in decisions {
                match decision {
                    Decision::Send { pe, frame } => {
                        (&pairs[pe as usize]).write_all(&frame).expect("a PE reads")
                    }
                    Decision::SendAll { to, frame } => {
                        // All PEs are on one node.
                        let n_receivers = if to == Receivers::All { pairs.len() } else { 1 };
                        for mut pair in &pairs[..n_receivers] {
                            pair.write_all(&frame).expect("a PE reads");
                        }
                    }
                    Decision::AllFinalized => {}
                    ended => {
                        end = Some(ended);
                        for pair in &pairs {
                            pair.shutdown(std::net::Shutdown::Both).expect("open");
                        }
                    }
                }
            }
        }
        end
    })
}

/// Returns a file in place of the memory of the node, which these tests do not use.
fn memory() -> OwnedFd {
    File::open("/dev/null").expect("it is there").into()
}

#[test]
fn exchanges_and_barriers() {
    for n_pes in [1_u32, 2, 3, 4, 8, 12] {
        let met = Barrier::new(n_pes as usize);
        let end = job(n_pes, |mut membership| {
            assert_eq!(
                (membership.n_pes(), membership.local_id()),
                (n_pes, membership.pe())
            );
            for round in 0..20_u8 {
                let record = |pe: u32| vec![round; 40 * pe as usize];
                let records = membership
                    .exchange(&record(membership.pe()))
                    .expect("records");
                assert_eq!(records, (0..n_pes).map(record).collect());

                let to_first = membership
                    .exchange_to_first(&record(membership.pe()))
                    .expect("records");
                assert_eq!(to_first, (membership.pe() == 0).then_some(records));

                met.wait();
                membership.barrier().expect("barrier");
            }

            membership.report_finalize().expect("finalized");
            membership.report_resumption().expect("resumed");
            membership.barrier().expect("barrier");
            membership.report_finalize().expect("finalized");
        });
        assert_eq!(end, None, "{n_pes} PEs");
    }
}

#[test]
fn the_largest_records_pass() {
    let end = job(3, |mut membership| {
        let records = membership
            .exchange(&vec![membership.pe() as u8; MAX_RECORD])
            .expect("records");
        assert!((0..3).all(|pe| records[pe] == vec![pe as u8; MAX_RECORD]));

        let refused = membership
            .exchange(&vec![0; MAX_RECORD + 1])
            .expect_err("too large");
        assert!(refused.to_string().contains("65537"), "{refused}");
        membership.report_finalize().expect("finalized");
    });
    assert_eq!(end, None);
}

#[test]
fn an_abort_passes_a_thread_that_waits_in_an_exchange() {
    let end = job(3, |mut membership| {
        membership.barrier().expect("all have joined");
        match membership.pe() {
            0 => {
                let aborter = membership.aborter();
                thread::scope(|scope| {
                    let waiting = scope.spawn(|| membership.barrier());
                    assert!(aborter.abort(3, &"é".repeat(MAX_MESSAGE)));
                    assert!(waiting.join().expect("no panic").is_err());
                });
            }
            1 => assert!(membership.exchange(b"never complete").is_err()),
            // Takes no part, so that nothing completes.
            _ => {}
        }
    });
    let message = Some(format!("PE 0: {}", "é".repeat(MAX_MESSAGE / 2)));
    assert_eq!(end, Some(Decision::EndJob { status: 3, message }));
}

#[test]
fn a_global_exit_ends_the_job_silently() {
    let end = job(2, |mut membership| {
        membership.barrier().expect("all have joined");
        if membership.pe() == 1 {
            assert!(membership.aborter().global_exit(0));
            return;
        }
        assert!(membership.barrier().is_err());
    });
    assert_eq!(
        end,
        Some(Decision::EndJob {
            status: 0,
            message: None
        })
    );
}

#[test]
fn alone_there_is_nobody_to_ask() {
    let mut membership = Membership::alone();
    assert_eq!(membership.pe(), 0);
    assert_eq!(membership.n_pes(), 1);
    assert_eq!(membership.local_id(), 0);
    assert_eq!(membership.nodes().n_nodes(), 1);

    assert!(
        membership
            .exchange(b"me")
            .expect("alone")
            .iter()
            .eq([b"me"])
    );
    assert!(
        membership
            .exchange_to_first(b"me")
            .expect("alone")
            .is_some()
    );
    assert!(membership.take_node_memory().is_none());
    membership.report_finalize().expect("no launcher");
    assert!(!membership.aborter().global_exit(0));
}

#[test]
fn a_launcher_of_another_version_is_named() {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    theirs.write_all(&[0, 0, 0, 0, 77]).expect("room");
    let error = OshrunMembership::join(ours, memory())
        .expect_err("another version")
        .to_string();
    assert!(
        error.contains("version 77") && error.contains("one installation"),
        "{error}"
    );
}
