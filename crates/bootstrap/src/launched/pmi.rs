//! A process manager that speaks PMI-1 or PMI-2 over a socket: Hydra, Slurm.
//!
//! MPI in the same program may use the same inherited socket. Both can use it in turn, since only
//! one request is in flight at a time. While the program is inside MPI, this module sends at most
//! the request that ends the job.

pub(crate) mod wire;

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rushmem_system::lock::lock;
use rustix::io::Errno;

use super::mpi::{self, Mpi};
use crate::connection::send_all;
use crate::error::Error;
use crate::process_manager::{Ender, ProcessManager};
use crate::time_limit::TimeLeft;
use wire::{Dialect, PmiDecoder, PmiMessage};

/// Maximum length of a value in PMI-2, whose managers cannot be asked for it.
const PMI_2_VALUE: usize = 1024;

/// The start of the name of a job under Hydra.
const HYDRA_JOB: &str = "kvs_";

/// A manager is not used if it limits values to this length or less, including the null character.
/// It must leave room for [`wire::split`], which needs at least 16 characters.
const TOO_SHORT: usize = 64;

/// The sending half, shared with the thread that ends the job.
#[derive(Debug)]
struct PmiSender {
    socket: OwnedFd,
    /// Locked while a request is sent, so that requests of two threads are not mixed.
    sending: Mutex<()>,

    // Relaxed: none of these publishes other data. The first two are stored while the connection is
    // opened, before the thread that watches it is started. `left` is stored before the report to
    // the manager, which closes the connection only after the report. The thread that watches
    // learns of that by a system call, and loads `left` afterwards.
    /// True if requests have the form of PMI-2.
    is_two: AtomicBool,
    /// True if the request that ends the job has the form of PMI-1 in any case. Hydra detects the
    /// form of each request, and that of MPICH 4.0 lacks the abort of PMI-2.
    aborts_by_one: AtomicBool,
    /// True once this process has reported its exit to the manager.
    left: AtomicBool,
}

impl PmiSender {
    fn dialect(&self) -> Dialect {
        if self.is_two.load(Ordering::Relaxed) {
            Dialect::Two
        } else {
            Dialect::One
        }
    }

    fn send(&self, command: &str, pairs: &[(&str, &str)]) -> io::Result<()> {
        self.send_as(self.dialect(), command, pairs)
    }

    fn send_as(&self, dialect: Dialect, command: &str, pairs: &[(&str, &str)]) -> io::Result<()> {
        let bytes = wire::encode(dialect, command, pairs);
        let _sending = lock(&self.sending);
        send_all(&self.socket, &bytes)
    }
}

impl Ender for PmiSender {
    fn connection(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    fn request_end(&self, status: i32) -> bool {
        if self.left.load(Ordering::Relaxed) {
            return false;
        }

        let by_two = self.dialect() == Dialect::Two && !self.aborts_by_one.load(Ordering::Relaxed);
        let status = status.to_string();
        let exit_code = ("exitcode", status.as_str());
        let sent = if by_two {
            let pairs = [("isworld", "TRUE"), ("msg", "aborted"), exit_code];
            self.send_as(Dialect::Two, "abort", &pairs)
        } else {
            self.send_as(Dialect::One, "abort", &[exit_code])
        };
        sent.is_ok()
    }
}

/// How a process gets its rank and the number of processes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Identity {
    /// From environment variables, until the manager answers with its own numbers in PMI-2.
    Known { pe: u32, n_pes: u32 },
    /// From the manager, which identifies the process by this number.
    FromManager(u32),
}

/// The parameters with which a connection is opened.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) socket: OwnedFd,
    pub(crate) dialect: Dialect,
    pub(crate) identity: Identity,
    /// `PMI_JOBID`, which this process sends back to a manager of PMI-2; `None` if it is not set.
    pub(crate) job: Option<String>,
    /// True if MPI has already opened PMI on this socket.
    pub(crate) is_open: bool,
    /// Maximum time for an answer that does not depend on other processes.
    pub(crate) limit: Duration,
}

/// The connection of this process to its process manager.
#[derive(Debug)]
pub(crate) struct Pmi {
    sender: Arc<PmiSender>,
    decoder: PmiDecoder,
    pe: u32,
    n_pes: u32,
    /// The name of the job, under which values are stored.
    job: String,
    /// Maximum length of a value.
    max_value: usize,
    /// Maximum time for an answer that does not depend on other processes.
    limit: Duration,
}

impl Pmi {
    /// Opens PMI, unless MPI has done so.
    pub(crate) fn open(opening: Opening) -> Result<Pmi, Error> {
        let sender = PmiSender {
            socket: opening.socket,
            sending: Mutex::new(()),
            is_two: AtomicBool::new(false),
            aborts_by_one: AtomicBool::new(false),
            left: AtomicBool::new(false),
        };
        let mut pmi = Pmi {
            sender: Arc::new(sender),
            decoder: PmiDecoder::new(Dialect::One),
            pe: 0,
            n_pes: 0,
            job: String::new(),
            max_value: PMI_2_VALUE - 1,
            limit: opening.limit,
        };

        match opening.identity {
            Identity::Known { pe, n_pes } => {
                pmi.pe = pe;
                pmi.n_pes = n_pes;
            }
            Identity::FromManager(id) => pmi.identify(id)?,
        }

        if !opening.is_open {
            let (version, subversion) = match opening.dialect {
                Dialect::One => ("1", "1"),
                Dialect::Two => ("2", "0"),
            };
            let pairs = [("pmi_version", version), ("pmi_subversion", subversion)];
            let reply = pmi.ask("init", &pairs, "response_to_init")?;
            if reply.value("pmi_version") != Some(version) {
                return Err(refused("init", &reply));
            }
        }
        match opening.dialect {
            Dialect::One => pmi.open_one()?,
            Dialect::Two => pmi.open_two(opening.job, opening.is_open)?,
        }

        if pmi.pe < pmi.n_pes {
            Ok(pmi)
        } else {
            Err(Error::Unexpected("a PE number beyond the job"))
        }
    }

    /// Asks the manager for the rank of the process that it identifies by `id`, and for the number
    /// of processes.
    fn identify(&mut self, id: u32) -> Result<(), Error> {
        self.ask("initack", &[("pmiid", &id.to_string())], "initack")?;

        // Three messages follow: the size, the rank and a number for debugging.
        let mut pe = None;
        let mut n_pes = None;
        for _ in 0..3 {
            let reply = self.reply("initack")?;
            pe = pe.or(number(&reply, "rank"));
            n_pes = n_pes.or(number(&reply, "size"));
        }

        let (Some(pe), Some(n_pes)) = (pe, n_pes) else {
            return Err(Error::Unexpected("an opening without rank and size"));
        };
        self.pe = pe;
        self.n_pes = n_pes;
        Ok(())
    }

    /// Completes the opening of PMI-1: asks for the length of values and the name of the job.
    fn open_one(&mut self) -> Result<(), Error> {
        let maxes = self.ask("get_maxes", &[], "maxes")?;
        let longest = number(&maxes, "vallen_max")
            .filter(|&length: &usize| length > TOO_SHORT)
            .ok_or_else(|| refused("get_maxes", &maxes))?;
        // The length includes the null character of C.
        self.max_value = longest - 1;

        let name = self.ask("get_my_kvsname", &[], "my_kvsname")?;
        self.job = name
            .value("kvsname")
            .ok_or_else(|| refused("get_my_kvsname", &name))?
            .to_owned();
        Ok(())
    }

    /// Completes the opening of PMI-2: asks for the rank, unless MPI has done so, and for the name
    /// of the job.
    fn open_two(&mut self, job: Option<String>, is_open: bool) -> Result<(), Error> {
        self.sender.is_two.store(true, Ordering::Relaxed);
        self.decoder.switch(Dialect::Two);

        if !is_open {
            let pe = self.pe.to_string();
            let mut pairs = vec![("pmirank", pe.as_str()), ("threaded", "FALSE")];
            if let Some(job) = &job {
                // The job id is sent only if there is one: the proxy of Hydra 5 exits on an empty
                // one.
                pairs.insert(0, ("pmijobid", job));
            }
            let reply = self.ask("fullinit", &pairs, "fullinit-response")?;
            let (Some(pe), Some(n_pes)) = (number(&reply, "rank"), number(&reply, "size")) else {
                return Err(refused("fullinit", &reply));
            };
            self.pe = pe;
            self.n_pes = n_pes;
        }

        let reply = self.ask("job-getid", &[], "job-getid-response")?;
        self.job = reply
            .value("jobid")
            .ok_or_else(|| refused("job-getid", &reply))?
            .to_owned();

        let is_hydra = self.job.starts_with(HYDRA_JOB);
        self.sender.aborts_by_one.store(is_hydra, Ordering::Relaxed);
        Ok(())
    }

    /// Sends a request and waits for its reply, which does not depend on other processes.
    fn ask(
        &mut self,
        command: &str,
        pairs: &[(&str, &str)],
        answer: &str,
    ) -> Result<PmiMessage, Error> {
        self.sender
            .send(command, pairs)
            .map_err(Error::ManagerLost)?;
        let reply = self.reply(command)?;
        expect(command, answer, reply)
    }

    /// Waits for the reply to `command`, which does not depend on other processes.
    fn reply(&mut self, command: &str) -> Result<PmiMessage, Error> {
        let mut limit = TimeLeft::new(self.limit);
        self.receive(Some(&mut limit)).map_err(|error| match error {
            Error::ManagerLost(cause) if cause.kind() == ErrorKind::TimedOut => {
                Error::ManagerSilent {
                    pe: self.pe,
                    request: command.to_owned(),
                    limit: self.limit,
                }
            }
            error => error,
        })
    }

    /// Sends a request whose reply follows when all processes of the job have sent it, and waits
    /// for the reply without a time limit.
    fn ask_with_all(&mut self, command: &str, pairs: &[(&str, &str)]) -> Result<PmiMessage, Error> {
        self.sender
            .send(command, pairs)
            .map_err(Error::ManagerLost)?;
        self.receive(None)
    }

    /// Receives the next message, within `limit` if there is one.
    fn receive(&mut self, mut limit: Option<&mut TimeLeft>) -> Result<PmiMessage, Error> {
        let mut bytes = [0; 4096];
        loop {
            match self.decoder.take() {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => {}
                Err(wire::Malformed) => return Err(Error::Unexpected("bytes that are not PMI")),
            }

            if let Some(limit) = &mut limit {
                limit
                    .readable(&self.sender.socket)
                    .map_err(Error::ManagerLost)?;
            }
            match rustix::io::read(&self.sender.socket, &mut bytes) {
                Ok(0) => return Err(Error::ManagerLost(ErrorKind::UnexpectedEof.into())),
                Ok(nbytes) => self.decoder.push(&bytes[..nbytes]),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Error::ManagerLost(error.into())),
            }
        }
    }

    /// Gets the text that is stored under a key.
    fn text(&mut self, key: &str) -> Result<String, Error> {
        let job = self.job.clone();
        let reply = match self.sender.dialect() {
            Dialect::One => self.ask("get", &[("kvsname", &job), ("key", key)], "get_result")?,
            Dialect::Two => {
                let pairs = [("jobid", job.as_str()), ("srcid", "-1"), ("key", key)];
                self.ask("kvs-get", &pairs, "kvs-get-response")?
            }
        };

        // Only PMI-2 has the key `found`.
        let is_found = reply.value("found").is_none_or(|found| found == "TRUE");
        match reply.value("value") {
            Some(text) if is_found => Ok(text.to_owned()),
            _ => Err(refused("get", &reply)),
        }
    }
}

/// Returns the number that a reply has under a key, if there is one.
fn number<N: FromStr>(reply: &PmiMessage, key: &str) -> Option<N> {
    reply.value(key)?.parse().ok()
}

/// Returns the reply if it is the expected `answer` and reports success.
fn expect(command: &str, answer: &str, reply: PmiMessage) -> Result<PmiMessage, Error> {
    let failed = reply.value("rc").is_some_and(|rc| rc != "0");
    if failed || reply.command() != answer {
        Err(refused(command, &reply))
    } else {
        Ok(reply)
    }
}

fn refused(request: &str, reply: &PmiMessage) -> Error {
    Error::Refused {
        request: request.to_owned(),
        reply: reply.to_string(),
    }
}

/// Returns the key of one text of a value, which [`wire::split`] has split.
fn part(key: &str, index: usize) -> String {
    format!("{key}-{index}")
}

impl ProcessManager for Pmi {
    fn pe(&self) -> u32 {
        self.pe
    }

    fn n_pes(&self) -> u32 {
        self.n_pes
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        let job = self.job.clone();
        for (index, text) in wire::split(value, self.max_value).iter().enumerate() {
            let key = part(key, index);
            match self.sender.dialect() {
                Dialect::One => {
                    let pairs = [("kvsname", job.as_str()), ("key", &key), ("value", text)];
                    self.ask("put", &pairs, "put_result")?
                }
                Dialect::Two => self.ask(
                    "kvs-put",
                    &[("key", &key), ("value", text)],
                    "kvs-put-response",
                )?,
            };
        }
        Ok(())
    }

    fn fence(&mut self) -> Result<(), Error> {
        match self.sender.dialect() {
            Dialect::One => {
                let reply = self.ask_with_all("barrier_in", &[])?;
                expect("barrier_in", "barrier_out", reply)?
            }
            Dialect::Two => {
                let reply = self.ask_with_all("kvs-fence", &[])?;
                expect("kvs-fence", "kvs-fence-response", reply)?;
                // Hydra replies to a fence at once, and to the next get when all processes have
                // called the fence. The key need not exist.
                let job = self.job.clone();
                let pairs = [
                    ("jobid", job.as_str()),
                    ("srcid", "-1"),
                    ("key", "rushmem-none"),
                ];
                self.ask_with_all("kvs-get", &pairs)?
            }
        };
        Ok(())
    }

    fn get(&mut self, _from: u32, key: &str) -> Result<Vec<u8>, Error> {
        wire::join(|index| self.text(&part(key, index)))?
            .ok_or(Error::Unexpected("a value that nobody put"))
    }

    fn ender(&self) -> Arc<dyn Ender> {
        self.sender.clone()
    }

    fn leave(&mut self) {
        self.sender.left.store(true, Ordering::Relaxed);
        // MPI reports the exit itself, in MPI_Finalize or at the exit of the process, and the
        // manager closes the connection after the first report.
        if mpi::state() == Mpi::Open {
            return;
        }

        let answer = match self.sender.dialect() {
            Dialect::One => "finalize_ack",
            Dialect::Two => "finalize-response",
        };
        // This fails if the manager has ended. It then needs no report.
        let _ = self.ask("finalize", &[], answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    /// Opens a connection. `manager` gets the other end of its socket, and closes it unless it
    /// returns it.
    fn open(
        dialect: Dialect,
        identity: Identity,
        manager: impl FnOnce(UnixStream) -> Option<UnixStream>,
    ) -> Result<Pmi, Error> {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let _theirs = manager(theirs);
        let limit = Duration::from_millis(50);
        Pmi::open(Opening {
            socket: ours.into(),
            dialect,
            identity,
            job: None,
            is_open: false,
            limit,
        })
    }

    /// Returns a manager that sends `text` and then nothing more.
    fn writes(text: &str) -> impl FnOnce(UnixStream) -> Option<UnixStream> {
        move |mut theirs| {
            theirs.write_all(text.as_bytes()).expect("room");
            Some(theirs)
        }
    }

    #[test]
    fn an_opening_against_nobody_is_over_soon() {
        for dialect in [Dialect::One, Dialect::Two] {
            for identity in [
                Identity::Known { pe: 1, n_pes: 2 },
                Identity::FromManager(5),
            ] {
                let error = open(dialect, identity, Some).expect_err("silence");
                assert!(matches!(&error, Error::ManagerSilent { .. }), "{error}");

                let error = open(dialect, identity, |_| None).expect_err("nobody");
                assert!(matches!(&error, Error::ManagerLost(_)), "{error}");

                let half = writes("cmd=response_to_init pmi_ver");
                let error = open(dialect, identity, half).expect_err("half an answer");
                assert!(matches!(&error, Error::ManagerSilent { .. }), "{error}");
            }
        }
    }

    #[test]
    fn the_manager_says_who_we_are() {
        let opened = |answer: &str| {
            let rest = "cmd=response_to_init rc=0 pmi_version=1\ncmd=maxes vallen_max=1024\n\
                        cmd=my_kvsname kvsname=job\n";
            open(
                Dialect::One,
                Identity::FromManager(5),
                writes(&format!("{answer}{rest}")),
            )
        };
        let pmi = opened("cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=3\ncmd=set debug=0\n");
        let pmi = pmi.expect("opened");
        assert_eq!((pmi.pe(), pmi.n_pes()), (3, 4));

        for answer in [
            "",
            "cmd=initack rc=1\n",
            "cmd=initack rc=0\ncmd=set size=4\n",
        ] {
            opened(answer).expect_err("no place in a job");
        }
    }
}
