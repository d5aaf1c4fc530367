//! A PE for the tests of oshrun. Each argument is a step; `1?step` is only for PE 1
//! (SHMEM_LOCAL_ID).
//!
//! It uses the job protocol through `rushmem_bootstrap`, without symmetric memory.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use rushmem_bootstrap::{Aborter, JoinOptions, Membership, UnmatchedInits, env};
use rushmem_explain::status::{
    AwaitedObject, Collective, Members, STATUS_BYTES, Stage, Status, Wait,
};
use rushmem_explain::status_slot;

/// The offset of the statuses in the memory of the node.
const STATUSES: u64 = 4096;

/// The state of the steps.
#[derive(Default)]
struct Pe {
    membership: Option<Membership>,
    aborter: Option<Aborter>,
    /// A thread that aborts the job.
    aborting: Option<JoinHandle<bool>>,
    /// The memory of the node, after `waits`.
    memory: Option<File>,
}

fn main() {
    let me = std::env::var(env::LOCAL_ID).unwrap_or_else(|_| "0".to_string());
    let mut pe = Pe::default();
    for step in std::env::args().skip(1) {
        match step.split_once('?') {
            Some((who, step)) if who == me => pe.perform(step),
            Some(_) => {}
            None => pe.perform(&step),
        }
    }
}

impl Pe {
    fn perform(&mut self, step: &str) {
        let (verb, rest) = step.split_once(':').unwrap_or((step, ""));
        match verb {
            "init" => match Membership::join(&JoinOptions::default(), |_, _| ()) {
                Ok(membership) => {
                    self.aborter = Some(membership.aborter());
                    self.membership = Some(membership);
                }
                Err(error) => {
                    eprintln!("{error}");
                    std::process::exit(9);
                }
            },
            "who" => {
                let membership = self.membership();
                println!(
                    "PE {} of {}, {} of its node",
                    membership.pe(),
                    membership.n_pes(),
                    membership.local_id()
                );
            }
            "exchange" => (0..number(rest)).for_each(|round| self.exchange(round)),
            "barrier" => self.membership().barrier().expect("barrier"),
            "finalize" => {
                self.membership().barrier().expect("barrier");
                self.membership().report_finalize().expect("finalized");
            }
            "finalized" => self.membership().report_finalize().expect("finalized"),
            "unfinalized" => {
                self.membership().barrier().expect("barrier");
                let inits = UnmatchedInits {
                    inits: 1,
                    finalizes: 0,
                };
                self.membership()
                    .report_unfinalized(inits)
                    .expect("unfinalized");
            }
            "refused" => assert!(self.membership().report_refusal(rest), "oshrun is there"),
            "resume" => self.membership().report_resumption().expect("resumed"),
            "memory" => self.memory(),
            "waits" => self.waits(number(rest)),
            "statuses" => {
                let stride = STATUS_BYTES as u64;
                self.membership()
                    .report_statuses(stride, STATUSES)
                    .expect("oshrun is there");
            }
            "descriptors" => descriptors(),
            "print" => println!("{rest}"),
            "complain" => eprintln!("{rest}"),
            "text" => {
                print!("{rest}");
                std::io::stdout().flush().expect("stdout");
            }
            "pid" => println!("pid {}", std::process::id()),
            "lines" => lines(number(rest)),
            "giant" => giant(number(rest)),
            "cat" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).expect("stdin");
                print!("{text}");
            }
            "sleep" => std::thread::sleep(Duration::from_millis(number(rest))),
            "run" => {
                let status = Command::new("sh").args(["-c", rest]).status().expect("sh");
                assert!(status.success(), "{rest}: {status}");
            }
            "own_group" => rustix::process::setpgid(None, None).expect("no session of its own"),
            "background" => drop(Command::new("sh").args(["-c", rest]).spawn().expect("sh")),
            "kill" => {
                let signal =
                    rustix::process::Signal::from_named_raw(number(rest) as i32).expect("a signal");
                // Rust's handler of SIGSEGV resets the action for the first one.
                for _ in 0..2 {
                    rustix::process::kill_process(rustix::process::getpid(), signal).expect("kill");
                }
            }
            "exit" => std::process::exit(number(rest) as i32),
            "abort" => {
                let (status, message) = rest.split_once(':').expect("abort:STATUS:MESSAGE");
                let is_sent = self.aborter().abort(number(status) as i32, message);
                await_the_end(is_sent, number(status) as i32);
            }
            "global_exit" => {
                let is_sent = self.aborter().global_exit(number(rest) as i32);
                await_the_end(is_sent, number(rest) as i32);
            }
            // One thread aborts while the main thread waits in an exchange.
            "abort_from_thread" => {
                let aborter = self.aborter().clone();
                let thread = std::thread::spawn(move || aborter.abort(5, "from a thread"));
                self.aborting = Some(thread);
            }
            "join" => {
                let sent = self
                    .aborting
                    .take()
                    .expect("after abort_from_thread")
                    .join();
                assert!(sent.expect("no panic"), "oshrun has the message");
            }
            _ => panic!("no step {step:?}"),
        }
    }

    fn membership(&mut self) -> &mut Membership {
        self.membership.as_mut().expect("after init")
    }

    fn aborter(&self) -> &Aborter {
        self.aborter.as_ref().expect("after init")
    }

    fn exchange(&mut self, round: u64) {
        let record = |pe: u32| {
            format!("round {round} of PE {pe}")
                .repeat(pe as usize + 1)
                .into_bytes()
        };
        let membership = self.membership();
        let records = membership
            .exchange(&record(membership.pe()))
            .expect("exchange");
        assert_eq!(records, (0..membership.n_pes()).map(record).collect());
    }

    /// Writes a byte to the node's memory, and checks those of all PEs of the node after a barrier.
    fn memory(&mut self) {
        let membership = self.membership();
        let nodes = membership.nodes().clone();
        let pe = membership.pe();
        let local = membership.local_id();
        let memory = File::from(membership.take_node_memory().expect("node memory"));
        assert!(membership.take_node_memory().is_none(), "taken once");

        memory
            .write_at(&[pe as u8 + 1], u64::from(local))
            .expect("write");
        membership.barrier().expect("barrier");

        let members: Vec<u8> = nodes
            .members(nodes.node_of(pe))
            .map(|pe| pe as u8 + 1)
            .collect();
        let mut bytes = vec![0; members.len() + 1];
        let nbytes = memory.read_at(&mut bytes, 0).expect("read");
        assert_eq!(&bytes[..nbytes], members);
    }

    /// Writes a status as the runtime does: the PE has been in a barrier for some seconds.
    fn waits(&mut self, seconds: u64) {
        let membership = self.membership.as_mut().expect("after init");
        let now = rushmem_system::clock::nanoseconds_of_host();
        let since = now.saturating_sub(seconds * 1_000_000_000);

        let members = Members::Strided {
            start: 0,
            stride: 1,
            n: membership.n_pes(),
        };
        let subject = Collective {
            team: "SHMEM_TEAM_WORLD".to_string(),
            is_active_set: false,
            number: 1,
            members,
            nth: 1,
            awaited: None,
        };
        let wait = Wait {
            thread: rustix::thread::gettid().as_raw_nonzero().get() as u32,
            call: "shmem_barrier_all".to_string(),
            called_at: None,
            search: None,
            allocated_at: None,
            limit: None,
            since,
            subject: AwaitedObject::Collective(subject),
        };
        let status = Status {
            pid: std::process::id(),
            pid_namespace: 0,
            stage: Stage::Initialized,
            waits: vec![wait],
            further_waits: Vec::new(),
            held_locks: Vec::new(),
            in_flight: None,
            finalizing: None,
            finds_polls: false,
            poll: None,
            checks: false,
        };

        let memory = self
            .memory
            .get_or_insert_with(|| File::from(membership.take_node_memory().expect("node memory")));
        let words = std::iter::once(0).chain(status_slot::encode(&status));
        let mut bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        bytes.resize(STATUS_BYTES, 0);
        let offset = STATUSES + STATUS_BYTES as u64 * u64::from(membership.local_id());
        memory.write_all_at(&bytes, offset).expect("memory");
    }
}

fn number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// Behaves as the runtime does after an abort: sleeps until oshrun kills the process. Exits after a
/// limit, or at once if oshrun could not be informed.
fn await_the_end(is_sent: bool, status: i32) {
    if is_sent {
        std::thread::sleep(Duration::from_secs(10));
    }
    std::process::exit(status)
}

/// Prints the open descriptors and their targets.
fn descriptors() {
    for entry in std::fs::read_dir("/proc/self/fd").expect("/proc") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a number")
            .to_string_lossy()
            .into_owned();
        // The descriptor of this directory itself may be closed by now.
        if let Ok(target) = std::fs::read_link(&path) {
            println!("descriptor {name} {}", target.display());
        }
    }
}

/// Prints lines that reveal damage, in pieces that do not end at line ends.
fn lines(count: u64) {
    let me = std::env::var(env::LOCAL_ID).expect("a PE");
    let text: String = (0..count)
        .map(|line| {
            let body = format!("{line:05}-").repeat(1 + (line as usize * 7) % 40);
            format!("<{me}:{line}:{body}>\n")
        })
        .collect();

    let mut rest = text.as_bytes();
    let mut size = 1;
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(size.min(rest.len()));
        rustix::io::write(rustix::stdio::stdout(), piece).expect("stdout");
        rest = later;
        size = size * 31 % 4093 + 1;
    }
}

/// Prints one line of about `nbytes` bytes slowly.
fn giant(nbytes: u64) {
    let me = std::env::var(env::LOCAL_ID).expect("a PE");
    let line = format!("<{}>\n", me.repeat(nbytes as usize));
    for piece in line.as_bytes().chunks(line.len() / 10) {
        std::io::stdout().write_all(piece).expect("stdout");
        std::io::stdout().flush().expect("stdout");
        std::thread::sleep(Duration::from_millis(10));
    }
}
