//! Tests each rule of `launcher`, without processes.

use proptest::prelude::*;

use super::*;
use crate::proto::encode;
use crate::records::MAX_RECORD;

/// Returns a job of `n_pes` silent PEs with pids 100, 101, ...
fn job(n_pes: u32) -> Server {
    let mut server = Server::new(
        NodeMap::one_node(n_pes).expect("PEs"),
        vec!["a".to_string()],
    );
    (0..n_pes).for_each(|pe| server.started(pe, 100 + pe));
    server
}

/// Returns a job whose PEs have all entered initialization.
fn running(n_pes: u32) -> Server {
    let mut server = job(n_pes);
    for pe in 0..n_pes {
        let decisions = say(&mut server, pe, &FromPe::Hello { pid: 100 + pe });
        let welcome = FromLauncher::Welcome {
            pe,
            nodes: NodeMap::one_node(n_pes).expect("PEs"),
        };
        assert_eq!(answers(&decisions), [(pe, welcome)]);
    }
    server
}

fn say(server: &mut Server, pe: u32, message: &FromPe) -> Vec<Decision> {
    server.received(pe, &encode(message))
}

fn decoded(frame: &[u8]) -> FromLauncher {
    let mut decoder = Decoder::new(usize::MAX);
    decoder.push(frame);
    decoder.take().expect("a frame").expect("a whole one")
}

fn answers(decisions: &[Decision]) -> Vec<(u32, FromLauncher)> {
    let answer = |decision: &Decision| match decision {
        Decision::Send { pe, frame } => (*pe, decoded(frame)),
        other => panic!("{other:?}"),
    };
    decisions.iter().map(answer).collect()
}

/// Returns the message that is sent to all PEs.
#[track_caller]
fn sent(decisions: &[Decision]) -> FromLauncher {
    match decisions {
        [
            Decision::SendAll {
                to: Receivers::All,
                frame,
            },
        ] => decoded(frame),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_ends<'a>(
    decisions: impl IntoIterator<Item = &'a Decision>,
    status: i32,
    message: Option<&str>,
) {
    let message = message.map(str::to_string);
    let end = Decision::EndJob { status, message };
    assert_eq!(decisions.into_iter().collect::<Vec<_>>(), [&end]);
}

fn exchange(round: u32, record: &[u8]) -> FromPe {
    FromPe::Exchange {
        round,
        to: Receivers::All,
        record: record.to_vec(),
    }
}

#[test]
fn exchanges_gather_by_pe() {
    for n_pes in [1_u32, 2, 3, 4, 8, 12] {
        let mut server = running(n_pes);
        for round in 0..3 {
            for pe in (0..n_pes).rev() {
                let decisions = say(&mut server, pe, &exchange(round, &[pe as u8; 3]));
                if pe > 0 {
                    assert_eq!(decisions, []);
                    continue;
                }
                let records = (0..n_pes).map(|pe| vec![pe as u8; 3]).collect();
                assert_eq!(sent(&decisions), FromLauncher::Gathered { round, records });
            }
        }
    }
}

#[test]
fn a_killed_pe_ends_the_job_in_any_phase() {
    let message = "oshrun: PE 1 (pid 101, host a) was killed by SIGKILL";
    let mut silent = job(2);
    assert_ends(&silent.exited(1, Exit::Signal(9)), 137, Some(message));

    let mut finalized = running(2);
    assert_eq!(say(&mut finalized, 1, &FromPe::Finalized), []);
    assert_ends(&finalized.exited(1, Exit::Signal(9)), 137, Some(message));

    let mut alone = running(1);
    assert_ends(
        &alone.exited(0, Exit::Signal(11)),
        139,
        Some("oshrun: PE 0 (pid 100, host a) was killed by SIGSEGV"),
    );
}

#[test]
fn an_exit_before_finalize_ends_the_job() {
    for (own, status) in [(3, 3), (0, 1)] {
        let mut server = running(3);
        let message = format!(
            "oshrun: PE 1 (pid 101, host a) exited with status {own} before shmem_finalize"
        );
        assert_ends(&server.exited(1, Exit::Status(own)), status, Some(&message));
        assert_eq!(
            server.exited(0, Exit::Signal(15)),
            None,
            "the end is announced once"
        );
        assert_eq!(server.status(), status);
    }
}

#[test]
fn the_last_running_pe_may_exit_as_it_likes() {
    let mut server = running(1);
    assert_eq!(server.exited(0, Exit::Status(3)), None);
    assert_eq!(server.status(), 3);
}

fn unfinalized(inits: u64, finalizes: u64) -> FromPe {
    FromPe::Unfinalized(UnmatchedInits { inits, finalizes })
}

#[test]
fn pes_that_agree_to_exit_before_finalize_are_warned_once() {
    let mut server = running(2);
    assert_eq!(say(&mut server, 0, &exchange(0, b"")), []);
    sent(&say(&mut server, 1, &exchange(0, b"")));
    for pe in 0..2 {
        assert_eq!(say(&mut server, pe, &unfinalized(1, 0)), []);
    }
    assert_eq!(server.exited(1, Exit::Status(0)), None);
    let message = "oshrun: warning: no PE called shmem_finalize; call it before the program ends";
    let warning = Decision::Warn {
        message: message.to_owned(),
    };
    assert_eq!(server.exited(0, Exit::Status(0)), Some(warning));
    assert_eq!(server.status(), 0);

    let mut twice = running(1);
    say(&mut twice, 0, &unfinalized(2, 1));
    let message = "oshrun: warning: shmem_init was called 2 times, but shmem_finalize once; call \
                   shmem_finalize once for each shmem_init";
    let warning = Decision::Warn {
        message: message.to_owned(),
    };
    assert_eq!(twice.exited(0, Exit::Status(0)), Some(warning));

    let mut late = running(1);
    say(&mut late, 0, &unfinalized(1, 0));
    say(&mut late, 0, &FromPe::Finalized);
    assert_eq!(late.exited(0, Exit::Status(0)), None);
}

#[test]
fn a_pe_that_waits_for_others_at_its_exit_is_not_waited_for() {
    let mut server = running(2);
    assert_eq!(say(&mut server, 1, &exchange(0, b"")), []);
    let message = "oshrun: PE 1 (pid 101, host a) exited with status 0 before shmem_finalize";
    assert_ends(&server.exited(1, Exit::Status(0)), 1, Some(message));
}

#[test]
fn the_end_of_a_failed_pe_names_the_transport_that_it_was_opening() {
    let crashed = |opens: &[&str]| {
        let mut server = running(2);
        for what in opens {
            let what = what.to_string();
            assert_eq!(say(&mut server, 0, &FromPe::Opening { what }), []);
        }
        server.exited(0, Exit::Signal(11))
    };

    let pe = "oshrun: PE 0 (pid 100, host a) was killed by SIGSEGV";
    let while_opening = format!(
        "{pe}; it was opening the transport ofi (b): select another transport (SHMEM_TRANSPORT), or see what \
         `shmem-info --doctor` says of this one"
    );
    let opens = ["the transport ofi (a)", "the transport ofi (b)"];
    assert_ends(&crashed(&opens), 139, Some(&while_opening));
    assert_ends(&crashed(&[opens[0], ""]), 139, Some(pe));
}

#[test]
fn the_end_of_a_failed_pe_names_what_it_was_refused() {
    let refused = |n_pes| {
        let mut server = running(n_pes);
        for what in ["8 bytes", "9 bytes"] {
            let what = what.to_string();
            assert_eq!(say(&mut server, 0, &FromPe::Refused { what }), []);
        }
        server
    };
    let pe = "oshrun: PE 0 (pid 100, host a)";

    for (signal, name) in [(6, "SIGABRT"), (7, "SIGBUS"), (11, "SIGSEGV")] {
        let killed = format!("{pe} was killed by {name}");
        let message = format!(
            "{killed}; if it used a null pointer, that may be because it was refused 8 bytes"
        );
        assert_ends(
            &refused(2).exited(0, Exit::Signal(signal)),
            128 + signal,
            Some(&message),
        );

        // A PE that has finalized did not need that memory.
        let mut finalized = refused(2);
        say(&mut finalized, 0, &FromPe::Finalized);
        assert_ends(
            &finalized.exited(0, Exit::Signal(signal)),
            128 + signal,
            Some(&killed),
        );
    }

    // No null pointer leads to this signal.
    let killed = format!("{pe} was killed by SIGKILL");
    assert_ends(&refused(2).exited(0, Exit::Signal(9)), 137, Some(&killed));

    let left = format!(
        "{pe} exited with status 3 before shmem_finalize; before that it was refused 8 bytes"
    );
    for n_pes in [1, 2] {
        assert_ends(&refused(n_pes).exited(0, Exit::Status(3)), 3, Some(&left));
    }

    let mut noticed = refused(1);
    say(&mut noticed, 0, &FromPe::Finalized);
    assert_eq!(noticed.exited(0, Exit::Status(3)), None);
}

#[test]
fn an_exit_without_init_ends_the_job_of_those_who_called_it() {
    let message = "oshrun: PE 1 (pid 101, host a) exited with status 0 without calling shmem_init, which PE 0 has called";
    let mut before = job(2);
    assert_eq!(before.exited(1, Exit::Status(0)), None);
    assert_ends(
        say(&mut before, 0, &FromPe::Hello { pid: 100 }).last(),
        1,
        Some(message),
    );

    let mut after = job(2);
    say(&mut after, 0, &FromPe::Hello { pid: 100 });
    assert_ends(&after.exited(1, Exit::Status(0)), 1, Some(message));
}

#[test]
fn programs_without_init_end_with_the_first_failure() {
    let mut server = job(3);
    for (pe, status) in [(2, 0), (1, 5), (0, 4)] {
        assert_eq!(server.exited(pe, Exit::Status(status)), None);
    }
    let message = "oshrun: PE 1 (pid 101, host a) exited with status 5 without calling shmem_init; 1 other PE failed, too";
    assert_eq!(server.failed_without_init().as_deref(), Some(message));
    assert_eq!(server.status(), 5);
}

#[test]
fn a_job_without_init_ends_silently_if_it_succeeds_or_is_interrupted() {
    let mut successful = job(2);
    for pe in 0..2 {
        assert_eq!(successful.exited(pe, Exit::Status(0)), None);
    }
    assert_eq!(successful.failed_without_init(), None);

    let mut interrupted = job(1);
    assert_eq!(interrupted.interrupted(2), None);
    assert_eq!(interrupted.exited(0, Exit::Status(130)), None);
    assert_eq!(interrupted.status(), 130);
    assert_eq!(interrupted.failed_without_init(), None);

    let mut ended = running(1);
    ended.exited(0, Exit::Status(3));
    assert_eq!(ended.failed_without_init(), None);
}

#[test]
fn a_failure_after_finalize_leaves_the_job_alone() {
    let mut server = running(2);
    assert_eq!(say(&mut server, 0, &FromPe::Finalized), []);
    assert_eq!(server.exited(0, Exit::Status(7)), None);
    let all = [Decision::AllFinalized];
    assert_eq!(say(&mut server, 1, &FromPe::Finalized), all);
    assert_eq!(server.exited(1, Exit::Status(0)), None);
    assert_eq!(server.status(), 7);
}

#[test]
fn an_init_after_finalize_is_collective_too() {
    let finalized = || {
        let mut server = running(2);
        for pe in 0..2 {
            say(&mut server, pe, &FromPe::Finalized);
        }
        server
    };

    let mut server = finalized();
    assert_eq!(say(&mut server, 0, &FromPe::Resumed), []);
    let message = "oshrun: PE 1 (pid 101, host a) exited with status 0 without calling shmem_init again, which PE 0 has called";
    assert_ends(&server.exited(1, Exit::Status(0)), 1, Some(message));

    let mut server = finalized();
    for pe in 0..2 {
        assert_eq!(say(&mut server, pe, &FromPe::Resumed), []);
    }
    assert_eq!(say(&mut server, 0, &exchange(0, b"x")), []);
    let records = [b"x".to_vec(), b"y".to_vec()].into_iter().collect();
    assert_eq!(
        sent(&say(&mut server, 1, &exchange(0, b"y"))),
        FromLauncher::Gathered { round: 0, records }
    );
    let message = "oshrun: PE 0 (pid 100, host a) exited with status 2 before shmem_finalize";
    assert_ends(&server.exited(0, Exit::Status(2)), 2, Some(message));
}

#[test]
fn each_finalize_of_all_is_reported_once() {
    let mut server = running(2);
    for pe in 0..2 {
        say(&mut server, pe, &FromPe::Finalized);
    }

    // What PE 0 has sent may arrive before PE 1 is known to have resumed.
    for pe in 0..2 {
        say(&mut server, pe, &FromPe::Resumed);
        let decisions = say(&mut server, pe, &FromPe::Finalized);
        let expected: &[Decision] = [&[][..], &[Decision::AllFinalized]][pe as usize];
        assert_eq!(decisions, expected);
    }
}

#[test]
fn nobody_waits_for_a_pe_that_has_left() {
    let message = "oshrun: PE 1 (pid 101, host a) exited with status 0 while PE 0 waits for it";
    let mut before = running(2);
    say(&mut before, 1, &FromPe::Finalized);
    assert_eq!(before.exited(1, Exit::Status(0)), None);
    assert_ends(&say(&mut before, 0, &exchange(0, b"")), 1, Some(message));

    let mut after = running(2);
    say(&mut after, 1, &FromPe::Finalized);
    say(&mut after, 0, &exchange(0, b""));
    assert_ends(&after.exited(1, Exit::Status(0)), 1, Some(message));
}

#[test]
fn the_first_abort_speaks_and_the_exit_of_its_pe_is_silent() {
    let abort = |text: &str, status| {
        let message = text.to_string();
        FromPe::Abort { status, message }
    };

    let mut server = running(2);
    assert_eq!(say(&mut server, 1, &abort("PE 1: no heap", 6)), []);
    assert_eq!(say(&mut server, 0, &abort("PE 0: me too", 1)), []);
    assert!(server.has_pending());
    assert_ends(&server.exited(1, Exit::Status(6)), 6, Some("PE 1: no heap"));
    assert!(!server.has_pending() && server.take_messages().is_empty());
    assert_eq!(server.exited(0, Exit::Signal(9)), None);
    assert_eq!(server.status(), 6);

    let message = Some("PE 0: no status");
    assert_ends(&say(&mut job(1), 0, &abort("no status", 256)), 1, message);
}

#[test]
fn equal_messages_are_printed_once_with_their_pes() {
    let abort = |pe| FromPe::Abort {
        status: 3,
        message: format!("PE {pe}: no heap"),
    };
    let mut all = running(3);
    assert_eq!(say(&mut all, 2, &abort(2)), []);
    assert_eq!(say(&mut all, 0, &abort(0)), []);
    assert_ends(&say(&mut all, 1, &abort(1)), 3, Some("all 3 PEs: no heap"));

    let mut some = running(3);
    assert_eq!(say(&mut some, 2, &abort(2)), []);
    assert_eq!(say(&mut some, 0, &abort(0)), []);
    assert_ends(&some.take_messages(), 3, Some("PEs 0 and 2: no heap"));
}

#[test]
fn equal_warnings_are_printed_at_most_twice() {
    let warning = |pe| FromPe::Warning {
        message: format!("PE {pe}: late"),
    };
    let warn = |message: &str| Decision::Warn {
        message: message.to_owned(),
    };

    let mut all = running(2);
    assert_eq!(say(&mut all, 1, &warning(1)), []);
    assert_eq!(
        say(&mut all, 0, &warning(0)),
        [warn("warning: all 2 PEs: late")]
    );
    assert!(!all.has_pending() && all.take_all_warnings().is_empty());

    let mut apart = running(4);
    assert_eq!(say(&mut apart, 1, &warning(1)), []);
    assert!(apart.has_pending());
    assert_eq!(apart.take_messages(), [warn("warning: PE 1: late")]);
    for pe in [0, 3] {
        assert_eq!(say(&mut apart, pe, &warning(pe)), []);
    }
    assert!(!apart.has_pending() && apart.take_messages().is_empty());
    assert_eq!(
        apart.take_all_warnings(),
        [warn("warning: PEs 0 and 3: late")]
    );
    assert_eq!(apart.take_all_warnings(), []);
    assert_eq!(apart.status(), 0);
}

#[test]
fn a_global_exit_is_silent() {
    for (argument, status) in [(0, 0), (3, 3), (259, 3), (-1, 255)] {
        let mut server = running(2);
        assert_ends(
            &say(&mut server, 0, &FromPe::GlobalExit { status: argument }),
            status,
            None,
        );
        assert_eq!(server.exited(1, Exit::Signal(15)), None);
        assert_eq!(server.status(), status);
    }
}

#[test]
fn an_interrupt_is_blamed_on_nobody() {
    let message = Some("oshrun: the job was ended by SIGINT");
    for exit in [Exit::Signal(2), Exit::Status(130), Exit::Status(0)] {
        let mut server = running(2);
        assert_eq!(server.interrupted(2), None);
        assert_ends(&server.exited(1, exit), 130, message);
    }

    let mut crash = running(2);
    assert_eq!(crash.interrupted(2), None);
    let message = "oshrun: PE 1 (pid 101, host a) was killed by SIGSEGV";
    assert_ends(&crash.exited(1, Exit::Signal(11)), 139, Some(message));

    let mut graceful = running(1);
    assert_eq!(graceful.interrupted(15), None);
    say(&mut graceful, 0, &FromPe::Finalized);
    assert_eq!(graceful.exited(0, Exit::Status(0)), None);
    assert_eq!(graceful.status(), 0);
}

#[test]
fn an_interrupt_before_all_pes_have_started_ends_the_job() {
    let mut server = Server::new(NodeMap::one_node(2).expect("PEs"), vec!["a".to_string()]);
    server.started(0, 100);
    assert_ends(
        &server.interrupted(2),
        130,
        Some("oshrun: the job was ended by SIGINT"),
    );
    assert_eq!(server.interrupted(2), None, "the end is announced once");
    server.started(1, 101);
    assert_eq!(server.exited(1, Exit::Signal(15)), None);
    assert_eq!(server.status(), 130);
}

#[test]
fn messages_out_of_turn_end_the_job() {
    let hello = FromPe::Hello { pid: 7 };
    let too_large = exchange(0, &vec![0; MAX_RECORD + 1]);
    let scripts: [(&[FromPe], &str); 9] = [
        (
            &[FromPe::Hello { pid: 0 }],
            "sent a process ID that cannot be",
        ),
        (
            &[FromPe::Hello { pid: u32::MAX }],
            "sent a process ID that cannot be",
        ),
        (
            &[hello.clone(), too_large],
            "sent a record that is too large",
        ),
        (&[exchange(0, b"")], "sent a message out of turn"),
        (&[FromPe::Finalized], "sent a message out of turn"),
        (
            &[hello.clone(), FromPe::Resumed],
            "sent a message out of turn",
        ),
        (
            &[hello.clone(), exchange(1, b"")],
            "sent an exchange out of turn",
        ),
        (
            &[hello.clone(), exchange(0, b""), exchange(0, b"")],
            "sent an exchange out of turn",
        ),
        (
            &[hello.clone(), FromPe::Finalized, hello],
            "started a second OpenSHMEM program in one job",
        ),
    ];
    for (script, expected) in scripts {
        let mut server = job(2);
        let last = script
            .iter()
            .flat_map(|message| say(&mut server, 0, message))
            .last();
        let Some(Decision::EndJob {
            status: 1,
            message: Some(text),
            ..
        }) = last
        else {
            panic!("{script:?}: {last:?}")
        };
        assert!(
            text.starts_with("oshrun: PE 0 (pid ") && text.contains(expected),
            "{text}"
        );
    }
}

#[test]
fn a_record_beyond_the_limit_is_refused_before_it_arrives() {
    let mut server = running(2);
    let frame = encode(&exchange(0, &vec![0; MAX_RECORD + 100]));
    let end = server.received(0, &frame[..8]);
    assert!(
        matches!(&end[..], [Decision::EndJob { status: 1, .. }]),
        "{end:?}"
    );
}

#[derive(Clone, Debug)]
enum Event {
    Message(u32, FromPe),
    Bytes(u32, Vec<u8>),
    Exit(u32, Exit),
    Interrupt,
}

fn event() -> impl Strategy<Value = Event> {
    let message = prop_oneof![
        4 => Just(FromPe::Hello { pid: 1 }),
        4 => (0_u32..3).prop_map(|round| exchange(round, b"r")),
        2 => Just(FromPe::Finalized),
        1 => Just(FromPe::Resumed),
        1 => Just(unfinalized(1, 0)),
        1 => Just(FromPe::Refused { what: String::new() }),
        1 => Just(FromPe::Opening { what: String::new() }),
        1 => Just(FromPe::Abort { status: 0, message: String::new() }),
        1 => Just(FromPe::Warning { message: String::new() }),
        1 => Just(FromPe::GlobalExit { status: 9 }),
    ];
    let exit = prop_oneof![(0_i32..3).prop_map(Exit::Status), Just(Exit::Signal(6))];
    prop_oneof![
        12 => (0_u32..3, message).prop_map(|(pe, message)| Event::Message(pe, message)),
        1 => (0_u32..3, prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(pe, bytes)| Event::Bytes(pe, bytes)),
        2 => (0_u32..3, exit).prop_map(|(pe, exit)| Event::Exit(pe, exit)),
        1 => Just(Event::Interrupt),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_the_job_ends_once_and_hears_nothing_after(events in prop::collection::vec(event(), 0..40)) {
        let mut server = job(3);
        let mut end = None;
        let mut exited = [false; 3];
        for event in events {
            let decisions = match event {
                Event::Message(pe, _) | Event::Bytes(pe, _) | Event::Exit(pe, _) if exited[pe as usize] => continue,
                Event::Message(pe, message) => say(&mut server, pe, &message),
                Event::Bytes(pe, bytes) => server.received(pe, &bytes),
                Event::Exit(pe, exit) => {
                    exited[pe as usize] = true;
                    server.exited(pe, exit).into_iter().collect()
                }
                Event::Interrupt => server.interrupted(2).into_iter().collect(),
            };

            for decision in decisions {
                prop_assert_eq!(end, None, "{:?} after the end", decision);
                if let Decision::EndJob { status, message } = decision {
                    prop_assert!(status != 0 || message.is_none());
                    end = Some(status);
                }
            }
            if let Some(status) = end {
                prop_assert_eq!(server.status(), status);
            }
        }
    }
}
