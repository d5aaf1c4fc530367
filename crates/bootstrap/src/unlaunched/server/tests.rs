//! A meeting ends with a reason whatever arrives at it, or does not. Its members are connections of
//! these tests.

use std::io::Write;
use std::net::SocketAddr;

use super::limits::PINGS;
use super::*;
use crate::connection::Connection;
use crate::proto::FromPe;
use crate::unlaunched::reach::{NoConnection, Reached, attempt, reach};
use crate::unlaunched::route::{MeetingAddress, MeetingRoute};

/// The limit of joining of a meeting whose members hold back what others wait for.
const SHORT: Duration = Duration::from_millis(800);
/// The limit of the other meetings.
const LONG: Duration = Duration::from_secs(60);

/// A meeting that this process serves.
struct Meeting {
    address: SocketAddr,
    secret: Secret,
}

impl Meeting {
    fn new(join: Duration) -> Meeting {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let secret = Secret::new(b"secret");
        let limits = MeetingLimits {
            join,
            silence: LONG,
        };
        ServedMeeting::start(
            vec![listener],
            secret.clone(),
            limits,
            MeetingSource::Variables,
        )
        .expect("a thread");
        Meeting { address, secret }
    }

    fn route(&self, pe: u32) -> MeetingRoute {
        MeetingRoute {
            address: MeetingAddress::Addresses(vec![self.address]),
            secret: self.secret.clone(),
            pe,
            // Only the first message names the number of PEs.
            n_pes: 0,
        }
    }

    /// Connects as a process that knows the secret.
    fn reach(&self, pe: u32) -> Reached {
        reach(&self.route(pe), LONG).expect("it listens")
    }

    /// Connects and joins.
    fn join(&self, pe: u32, n_pes: u32, host: &str) -> TestMember {
        let Reached { stream, session } = self.reach(pe);
        let socket = stream.try_clone().expect("a descriptor");
        let connection = Connection::sealed(stream, session);
        connection.send(&join(pe, n_pes, host)).expect("it reads");
        TestMember { connection, socket }
    }

    /// Returns the members of a job that has begun, each on this host.
    fn job<const N: usize>(&self, hosts: [&str; N]) -> [TestMember; N] {
        let mut pes = 0..;
        let mut members = hosts.map(|host| {
            let pe = pes.next().expect("there is always one");
            self.join(pe, N as u32, host)
        });

        for member in &mut members {
            assert!(matches!(member.receive(), FromLauncher::Welcome { .. }));
        }
        members
    }
}

fn join(pe: u32, n_pes: u32, host: &str) -> FromPe {
    FromPe::Join {
        pe,
        n_pes,
        pid: 4711,
        host: host.to_owned(),
        serves: false,
    }
}

struct TestMember {
    connection: Connection,
    socket: TcpStream,
}

impl TestMember {
    fn contribute(&self) {
        let exchange = FromPe::Exchange {
            round: 0,
            to: proto::Receivers::All,
            record: b"record".to_vec(),
        };
        self.connection.send(&exchange).expect("it reads");
    }

    fn finalize(&self) {
        self.connection.send(&FromPe::Finalized).expect("it reads");
    }

    fn receive(&mut self) -> FromLauncher {
        self.connection.receive().expect("a message")
    }

    /// Answers requests for a sign of life, at most `n`. Returns the next other message; `None` if
    /// there was none before the `n`-th request.
    fn receive_alive(&mut self, n: usize) -> Option<FromLauncher> {
        for _ in 0..n {
            match self.receive() {
                FromLauncher::Ping => self.connection.send(&FromPe::Pong).expect("it reads"),
                message => return Some(message),
            }
        }
        None
    }

    /// Sends bytes as a process in between could.
    fn forge(&mut self) {
        self.socket.write_all(&[7; 64]).expect("it reads");
    }
}

fn reason(message: Option<FromLauncher>) -> String {
    match message {
        Some(FromLauncher::End {
            status: 1,
            message: Some(reason),
        }) => reason,
        Some(FromLauncher::Refused { why }) => why,
        other => panic!("no reason, but {other:?}"),
    }
}

#[test]
fn a_member_of_which_nothing_arrives_is_named() {
    let [mut first, _silent] = Meeting::new(SHORT).job(["a", "b"]);
    first.contribute();
    let why = reason(first.receive_alive(usize::MAX));
    let words = "PE 1 (pid 4711, host b) has sent nothing for 0.8 s while other PEs wait for it";
    assert!(why.contains(words), "{why}");
}

#[test]
fn the_last_finalize_ends_when_all_have_reported_it() {
    let [mut first, killed, mut last] = Meeting::new(SHORT).job(["a", "b", "c"]);
    first.finalize();
    // A process that has reported may end. Its report must have arrived.
    killed.finalize();
    drop(killed);

    // Both get no answer, but only requests for a sign of life, for twice the limit.
    assert_eq!(last.receive_alive(2 * PINGS as usize), None);
    for _ in 0..2 * PINGS {
        assert_eq!(first.receive(), FromLauncher::Ping);
    }

    last.finalize();
    for member in [&mut first, &mut last] {
        let answer = member.receive_alive(usize::MAX);
        assert_eq!(answer, Some(FromLauncher::AllFinalized));
    }
}

#[test]
fn only_a_member_that_others_await_in_finalize_must_live() {
    // Neither answers.
    let [mut finalized, silent] = Meeting::new(SHORT).job(["a", "b"]);
    finalized.finalize();
    let why = loop {
        match finalized.receive() {
            FromLauncher::Ping => {}
            message => break reason(Some(message)),
        }
    };
    assert!(why.contains("PE 1 (pid 4711, host b) has sent"), "{why}");
    drop(silent);
}

#[test]
fn a_member_that_needs_long_is_awaited() {
    let [mut first, mut slow] = Meeting::new(SHORT).job(["a", "b"]);
    first.contribute();

    let slow = thread::spawn(move || {
        // Three times the limit.
        assert_eq!(slow.receive_alive(3 * PINGS as usize), None);
        slow.contribute();
        slow.receive_alive(usize::MAX)
    });

    for received in [
        first.receive_alive(usize::MAX),
        slow.join().expect("no panic"),
    ] {
        assert!(matches!(received, Some(FromLauncher::Gathered { .. })));
    }
}

#[test]
fn changed_bytes_of_a_member_are_named_as_such() {
    let [mut first, mut changed] = Meeting::new(LONG).job(["a", "b"]);
    changed.forge();
    for member in [&mut first, &mut changed] {
        let why = reason(member.receive_alive(1));
        let words = "exchanged what was sent between PE 1 (pid 4711, host b) and the meeting";
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn a_first_message_that_was_changed_is_refused_with_the_reason() {
    let meeting = Meeting::new(LONG);
    let Reached { stream, session } = meeting.reach(1);
    let socket = stream.try_clone().expect("a descriptor");
    let connection = Connection::sealed(stream, session);
    let mut member = TestMember { connection, socket };
    member.forge();
    let why = reason(member.receive_alive(1));
    assert!(why.contains("sent between PE 1 and the meeting"), "{why}");
}

#[test]
fn a_first_message_that_comes_late_is_refused_with_the_reason() {
    let meeting = Meeting::new(LONG);
    let Reached { stream, session } = meeting.reach(1);
    let mut connection = Connection::sealed(stream, session);
    let why = reason(Some(connection.receive().expect("a refusal")));
    assert!(why.contains("has not arrived within 5 s"), "{why}");
}

#[test]
fn a_process_that_has_not_joined_learns_why_the_job_ends() {
    let meeting = Meeting::new(SHORT);
    let Reached { stream, session } = meeting.reach(1);
    let mut connection = Connection::sealed(stream, session);
    let _first = meeting.join(0, 2, "a");
    let why = reason(Some(connection.receive().expect("a refusal")));
    assert!(why.contains("PE 1 has not joined within 0.8 s"), "{why}");
}

#[test]
fn a_process_joins_as_the_pe_that_it_has_proved_to_be() {
    let meeting = Meeting::new(LONG);
    let Reached { stream, session } = meeting.reach(1);
    let mut connection = Connection::sealed(stream, session);
    connection.send(&join(0, 2, "a")).expect("it reads");
    let why = reason(Some(connection.receive().expect("a refusal")));
    let words = "has proved to be PE 1 states that it is PE 0";
    assert!(why.contains(words), "{why}");
}

#[test]
fn a_process_of_the_next_job_waits_while_the_job_runs() {
    let meeting = Meeting::new(LONG);
    let _members = meeting.job(["a", "b"]);
    for pe in [1, 2] {
        let attempted = attempt(meeting.address, &meeting.route(pe), LONG);
        assert!(matches!(attempted, Err(NoConnection::Later)));
    }
}

#[test]
fn processes_of_two_jobs_learn_that_they_may_be() {
    for (pe, n_pes) in [(1, 3), (0, 2)] {
        let meeting = Meeting::new(LONG);
        let _first = meeting.join(0, 2, "a");
        let why = reason(Some(meeting.join(pe, n_pes, "b").receive()));
        let words = "if another job with this SHMEM_JOB may still run, start after its end";
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn closed_listeners_are_no_events_while_a_forked_child_has_copies() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let _of_child = listener.try_clone().expect("a descriptor");
    let meeting = ServedMeeting {
        secret: Secret::new(b"secret"),
        listeners: Listeners::new(vec![listener]).expect("a socket"),
    };
    let limits = MeetingLimits::default();
    let server = MeetingServer::new(meeting, limits, MeetingSource::Variables).expect("a watch");

    server.stop_listening();
    let events = server.watch.wait(Some(Duration::ZERO)).expect("a look");
    assert_eq!(events, []);
}

#[test]
fn the_reason_is_printed_by_a_process_that_is_still_there() {
    let [first, second, mut third] = Meeting::new(LONG).job(["a", "b", "b"]);
    drop(second);
    let why = reason(Some(third.receive()));
    assert!(why.contains("PE 1 (pid 4711, host b) ended"), "{why}");
    drop(first);
}
