//! A PE's connection to the meeting of its job.
//!
//! A thread receives the messages of the meeting. It passes on those that the PE waits for. It ends
//! the process when the meeting requests that, or when the connection ends before the last
//! finalize.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::prepare;
use super::reach::{Reached, SLACK, reach};
use super::route::{MeetingAddress, MeetingLimits, MeetingRoute};
use crate::connection::{Connection, Sender};
use crate::error::Error;
use crate::process_manager::{Ender, ProcessManager};
use crate::proto::{FromLauncher, FromPe, Receivers};
use crate::records::Records;
use crate::time_limit::TimeLeft;
use rushmem_system::host::host_name;
use rushmem_system::signals::without_signals;
use rushmem_system::stderr::print_line;
use serde::{Deserialize, Serialize};

/// Maximum time for which a process that has requested the end of the job waits until the meeting,
/// which it serves itself, ends it. Until then the meeting tells the other members why.
const END: Duration = Duration::from_secs(5);

/// The number of the server while no PE is known to serve the meeting.
const NOBODY: u32 = u32::MAX;

/// The connection of this PE to the meeting of its job.
#[derive(Debug)]
pub(crate) struct MeetingClient {
    pe: u32,
    n_pes: u32,
    state: Arc<ClientState>,
    /// The messages of the meeting. An error is the last item.
    messages: mpsc::Receiver<Result<FromLauncher, Error>>,
    round: u32,
    /// The values that this PE has put since the last fence.
    puts: Vec<Put>,
    /// The values that the PEs have put between the last two fences, by PE and key.
    values: HashMap<(u32, String), Vec<u8>>,
    limits: MeetingLimits,
}

/// A value that a PE has put.
#[derive(Debug, Serialize, Deserialize)]
struct Put {
    key: String,
    value: Vec<u8>,
}

/// The record of a PE in a fence.
#[derive(Debug, Serialize, Deserialize)]
struct FenceRecord {
    /// True if the process of the PE serves the meeting.
    serves: bool,
    puts: Vec<Put>,
}

/// The state that the PE shares with the thread that receives.
#[derive(Debug)]
struct ClientState {
    sender: Arc<Sender>,
    pe: u32,
    /// True if this process serves the meeting.
    serves: bool,
    /// The PE whose process serves the meeting, or [`NOBODY`]. Relaxed: only the text of a message
    /// depends on it.
    server: AtomicU32,
    /// True from the report of the last finalize on: the meeting may end. Relaxed: it publishes no
    /// other data, and is stored before the report without which the meeting does not end.
    finalized: AtomicBool,
}

impl MeetingClient {
    /// Joins the meeting. Returns when all PEs have joined. `serves` is true if this process serves
    /// it.
    pub(super) fn join(
        route: &MeetingRoute,
        serves: bool,
        limits: MeetingLimits,
    ) -> Result<MeetingClient, Error> {
        let MeetingRoute { pe, n_pes, .. } = *route;

        let Reached { stream, session } = reach(route, limits.join)?;
        prepare(&stream, limits.silence);
        // A process in between that does not read must not stop this one for ever.
        stream
            .set_write_timeout(Some(limits.join + SLACK))
            .map_err(Error::Serving)?;

        let connection = Connection::sealed(stream, session);
        let server = match route.address {
            MeetingAddress::Named(_) => 0,
            // The first fence tells which process has made the unique id.
            MeetingAddress::Addresses(_) => NOBODY,
        };
        let state = Arc::new(ClientState {
            sender: connection.sender().clone(),
            pe,
            serves,
            server: AtomicU32::new(server),
            finalized: AtomicBool::new(false),
        });

        let join = FromPe::Join {
            pe,
            n_pes,
            pid: std::process::id(),
            host: host_name(),
            serves: state.serves,
        };
        connection.send(&join).map_err(|_| Error::MeetingGone)?;

        let client = MeetingClient {
            pe,
            n_pes,
            messages: start_receiving(connection, state.clone())?,
            state,
            round: 0,
            puts: Vec::new(),
            values: HashMap::new(),
            limits,
        };

        client.await_welcome()?;
        Ok(client)
    }

    /// Waits until all PEs have joined. The meeting, which may have begun only now, says first
    /// which PEs are missing.
    fn await_welcome(&self) -> Result<(), Error> {
        match self.next_message()? {
            FromLauncher::Welcome { pe, nodes } if pe == self.pe && nodes.n_pes() == self.n_pes => {
                Ok(())
            }
            FromLauncher::Refused { why } => Err(Error::NotWelcome(why)),
            _ => Err(Error::Unexpected("a message of another meeting")),
        }
    }

    /// Waits for the next message of the meeting that is not a request for a sign of life. The wait
    /// lasts at most for the limit of joining and the slack, and as long again after each such
    /// request.
    fn next_message(&self) -> Result<FromLauncher, Error> {
        let limit = self.limits.join + SLACK;
        let mut left = TimeLeft::new(limit);
        while let Some(received) = left.spend(|slice| self.messages.recv_timeout(slice)) {
            match received {
                Ok(Ok(FromLauncher::Ping)) => left = TimeLeft::new(limit),
                Ok(message) => return message,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(Error::MeetingGone),
            }
        }
        Err(Error::SilentMeeting { limit })
    }

    fn exchange_all(&mut self, record: Vec<u8>) -> Result<Records, Error> {
        let limit = self.limits.join + SLACK;
        let round = self.round;
        let exchange = FromPe::Exchange {
            round,
            to: Receivers::All,
            record,
        };
        self.state
            .sender
            .send(&exchange)
            .map_err(|error| match error.kind() {
                // The time limit of the socket, which `join` has set, is over.
                ErrorKind::WouldBlock => Error::SilentMeeting { limit },
                _ => Error::MeetingGone,
            })?;
        self.round = round.wrapping_add(1);

        match self.next_message()? {
            FromLauncher::Gathered { round: of, records }
                if of == round && records.n_pes() == self.n_pes =>
            {
                Ok(records)
            }
            _ => Err(Error::Unexpected("the records of another exchange")),
        }
    }
}

impl ProcessManager for MeetingClient {
    fn pe(&self) -> u32 {
        self.pe
    }

    fn n_pes(&self) -> u32 {
        self.n_pes
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.puts.push(Put {
            key: key.to_owned(),
            value: value.to_vec(),
        });
        Ok(())
    }

    fn fence(&mut self) -> Result<(), Error> {
        let record = FenceRecord {
            serves: self.state.serves,
            puts: std::mem::take(&mut self.puts),
        };
        let record = postcard::to_stdvec(&record).expect("plain data and memory does not refuse");
        let records = self.exchange_all(record)?;

        self.values.clear();
        for (pes, record) in records.runs() {
            let FenceRecord { serves, puts } = postcard::from_bytes(record)
                .map_err(|_| Error::Unexpected("values that cannot be read"))?;
            // One process serves, so its record is in a run of one PE.
            if serves {
                self.state.server.store(pes.start, Ordering::Relaxed);
            }
            for pe in pes {
                for Put { key, value } in &puts {
                    self.values.insert((pe, key.clone()), value.clone());
                }
            }
        }
        Ok(())
    }

    fn get(&mut self, from: u32, key: &str) -> Result<Vec<u8>, Error> {
        self.values
            .get(&(from, key.to_owned()))
            .cloned()
            .ok_or(Error::Unexpected("a value that nobody put"))
    }

    fn exchange(&mut self, record: &[u8]) -> Option<Result<Records, Error>> {
        Some(self.exchange_all(record.to_vec()))
    }

    fn ender(&self) -> Arc<dyn Ender> {
        self.state.clone()
    }

    fn report_finalize(&self) -> Result<(), Error> {
        // An exit handler may finalize after the exit without finalize was reported.
        if self.state.finalized.swap(true, Ordering::Relaxed) {
            return Ok(());
        }

        // If this fails, the wait for the answer fails, too.
        let _ = self.state.sender.send(&FromPe::Finalized);

        match self.next_message() {
            // From the report on, this PE does not need the meeting: see the module `server`.
            Ok(FromLauncher::AllFinalized) | Err(Error::MeetingGone) => Ok(()),
            Ok(_) => Err(Error::Unexpected("another answer to the last finalize")),
            Err(error) => Err(error),
        }
    }

    fn report_resumption(&self) {
        self.state.finalized.store(false, Ordering::Relaxed);
        // This fails if the meeting has ended, which the next exchange reports.
        let _ = self.state.sender.send(&FromPe::Resumed);
    }
}

impl Ender for ClientState {
    fn request_end(&self, status: i32) -> bool {
        let is_sent = self.sender.send(&FromPe::GlobalExit { status }).is_ok();
        if is_sent && self.serves {
            // The meeting ends with this process, so it first ends the others and then this one.
            thread::sleep(END);
        }
        is_sent
    }
}

/// Starts the thread that receives. Returns the channel by which it passes messages on.
fn start_receiving(
    connection: Connection,
    state: Arc<ClientState>,
) -> Result<mpsc::Receiver<Result<FromLauncher, Error>>, Error> {
    let (to, messages) = mpsc::channel();
    without_signals(|| {
        thread::Builder::new()
            .name("rushmem-member".into())
            .spawn(move || receive(connection, &to, &state))
    })
    .map_err(Error::Serving)?;
    Ok(messages)
}

/// Passes messages on until the connection ends. Then ends the process, unless it has not joined or
/// its last finalize is done.
fn receive(
    mut connection: Connection,
    to: &mpsc::Sender<Result<FromLauncher, Error>>,
    state: &ClientState,
) {
    let mut is_member = false;
    let error = loop {
        match connection.receive() {
            Ok(FromLauncher::End { status, message }) => {
                if let Some(message) = message {
                    print_line(message);
                }
                end(status)
            }
            Ok(message) => {
                is_member |= matches!(message, FromLauncher::Welcome { .. });

                if matches!(message, FromLauncher::Ping) {
                    // If the connection has ended, the next message is an error.
                    let _ = state.sender.send(&FromPe::Pong);
                }
                // A ping is passed on, too: it extends the wait of the PE.
                if to.send(Ok(message)).is_err() {
                    return;
                }
            }
            Err(error) => break error,
        }
    };

    if !is_member {
        let why = match error {
            Error::Lost(_) => Error::MeetingGone,
            error => error,
        };
        // This fails if the process has stopped waiting, after its limit.
        let _ = to.send(Err(why));
        return;
    }

    if state.finalized.load(Ordering::Relaxed) {
        return;
    }
    end_without_meeting(state, &error)
}

/// Ends this process, which can no longer receive from the meeting for the reason `error`.
fn end_without_meeting(state: &ClientState, error: &Error) -> ! {
    if let Error::Forged(_) = error {
        // Only this process has noticed, so it prints the reason itself.
        print_line(format_args!("PE {}: {error}; all PEs end", state.pe));
        end(1);
    }

    // One line is enough for the job: that of the lowest PE whose process does not serve the
    // meeting.
    let server = state.server.load(Ordering::Relaxed);
    if state.pe == u32::from(server == 0) {
        let who = match server {
            NOBODY => "the process that serves the meeting of this job".to_owned(),
            pe => format!("PE {pe}, whose process serves the meeting of this job,"),
        };
        print_line(format_args!(
            "PE {}: {who} ended, or its host is gone, before shmem_finalize; all PEs end",
            state.pe
        ));
    }
    end(1)
}

/// Ends this process without its exit handlers, which could wait for other PEs.
fn end(status: i32) -> ! {
    // SAFETY: the call ends the process immediately; other threads may be in any state.
    unsafe { libc::_exit(status) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::map::NodeMap;
    use crate::unlaunched::{HANDSHAKE, MEETING};
    use rushmem_connect::Secret;
    use rushmem_connect::handshake::{Acceptor, Answer, CLAIM};
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Accepts PE 1 of 2 PEs as the meeting does, and starts the job. Returns the connection.
    fn meet(listener: &TcpListener, secret: &Secret) -> Connection {
        let (mut stream, _) = listener.accept().expect("it connects");
        let mut acceptor = Acceptor::new(HANDSHAKE, secret, MEETING, [1; 32]);
        stream.write_all(&acceptor.greeting()).expect("room");

        let mut claim = [0; CLAIM];
        stream.read_exact(&mut claim).expect("a claim");
        acceptor.check(&claim).expect("it knows the secret");
        stream
            .write_all(&acceptor.answer(Answer::Welcome))
            .expect("room");

        let mut connection = Connection::sealed(stream, acceptor.session());
        assert!(matches!(
            connection.receive(),
            Ok(FromPe::Join { pe: 1, .. })
        ));
        let nodes = NodeMap::one_node(2).expect("two PEs");
        connection
            .send(&FromLauncher::Welcome { pe: 1, nodes })
            .expect("it reads");
        connection
    }

    /// Without that rule, the thread that receives would take the end for a loss, and end the
    /// process of this test.
    #[test]
    fn the_end_of_the_meeting_is_an_answer_to_the_last_finalize() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let secret = Secret::new(b"secret");
        let route = MeetingRoute {
            address: MeetingAddress::Addresses(vec![listener.local_addr().expect("bound")]),
            secret: secret.clone(),
            pe: 1,
            n_pes: 2,
        };

        let meeting = thread::spawn(move || {
            let mut connection = meet(&listener, &secret);
            assert_eq!(connection.receive().ok(), Some(FromPe::Finalized));
        });
        let client =
            MeetingClient::join(&route, false, MeetingLimits::default()).expect("it meets");
        client.report_finalize().expect("the meeting has ended");
        meeting.join().expect("no panic");

        // An exit handler may finalize once more.
        client.report_finalize().expect("it is finalized");
    }
}
