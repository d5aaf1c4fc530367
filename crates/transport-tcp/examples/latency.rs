//! The cost of the provider between two processes over loopback, beside the floor: a busy-polling
//! ping-pong on a plain socket in the same program.
//!
//! `cargo run --release -p rushmem-transport-tcp --example latency [runs [part of a line's name]]`
//!
//! Each line is the median of the runs with the quartiles and the best. "polls" and "computes" say
//! what the target does meanwhile: wait in the library, or compute outside it so that its service
//! thread serves.
#![allow(unsafe_code)]

use rushmem_transport::{
    Amos, Completion, Directory, Endpoint, Get, Host, LocalBuf, Open, Pe, PeRecord, Put,
    RemoteAddr, Segment, Transport, mem::Amo,
};
use rushmem_transport_tcp::PROVIDER;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

const MIB: usize = 1 << 20;
/// The heap: words that are waited on, words that are used, and room for large transfers.
const HEAP: usize = 4 * MIB;
const FLAG: usize = 0;
const DONE: usize = 64;
const DATA: usize = 4096;
const ROUNDS: usize = 100;

struct Quiet;

impl Host for Quiet {}

/// One of the two PEs.
struct Bench {
    me: usize,
    transport: Box<dyn Transport>,
    endpoint: Box<dyn Endpoint>,
    heap: *mut u8,
    side: UnixStream,
    runs: usize,
    /// Only lines whose names have this in them are measured.
    only: String,
    /// The last value that PE 0 wrote to the word at `DONE`.
    words_done: u64,
}

fn main() {
    let runs = std::env::args().nth(1).map_or(15, |n| n.parse().expect("a number of runs"));
    let only = std::env::args().nth(2).unwrap_or_default();
    if std::env::var_os("RUSHMEM_LATENCY").is_some() {
        let side = std::io::stdin().as_fd().try_clone_to_owned().expect("the inherited socket");
        Bench::join(1, side.into(), runs, only).run();
        return;
    }
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args([&runs.to_string(), &only])
        .env("RUSHMEM_LATENCY", "1")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .expect("starting the other PE");
    Bench::join(0, ours, runs, only).run();
    assert!(child.wait().expect("the other PE").success());
}

/// Stay on the `index`-th processor that this process may use, if there is one.
fn run_on_processor(index: usize) {
    let usable = sched_getaffinity(None).expect("the processors of this process");
    if let Some(cpu) = (0..CpuSet::MAX_CPU).filter(|&cpu| usable.is_set(cpu)).nth(index) {
        let mut one = CpuSet::new();
        one.set(cpu);
        sched_setaffinity(None, &one).expect("a processor of this process");
    }
}

fn send(side: &mut UnixStream, bytes: &[u8]) {
    side.write_all(&[bytes.len() as u8]).expect("the other PE is there");
    side.write_all(bytes).expect("the other PE is there");
}

fn receive(side: &mut UnixStream) -> Vec<u8> {
    let mut nbytes = [0];
    side.read_exact(&mut nbytes).expect("the other PE is there");
    let mut bytes = vec![0; usize::from(nbytes[0])];
    side.read_exact(&mut bytes).expect("the other PE is there");
    bytes
}

/// Median and quartiles of one figure per run.
fn report(what: &str, unit: &str, mut figures: Vec<f64>) {
    figures.sort_by(f64::total_cmp);
    let at = |part: usize| figures[(figures.len() - 1) * part / 4];
    let (best, median) = if unit == "M/s" { (at(4), at(2)) } else { (at(0), at(2)) };
    let (low, high) = (at(1), at(3));
    println!("{what:<44} {median:>9.2} {unit:<5} ({low:.2} to {high:.2}, best {best:.2})");
}

fn at(offset: usize) -> RemoteAddr {
    RemoteAddr { segment: Segment::Heap, offset: offset as u64 }
}

impl Bench {
    fn join(me: usize, mut side: UnixStream, runs: usize, only: String) -> Bench {
        let open = Open {
            pe: Pe(me as u32),
            n_pes: 2,
            secret: [1; 32],
            one_machine: true,
            cpus_per_pe: 1,
            amos: Amos::Software,
            part: None,
            host: Arc::new(Quiet),
        };
        let mut transport = (PROVIDER.open)(&open).expect("sockets");
        // Kept for the life of the process.
        let heap = Box::leak(vec![0u64; HEAP / 8].into_boxed_slice()).as_mut_ptr().cast();
        // SAFETY: leaked above.
        let key = unsafe { transport.register(Segment::Heap, heap, HEAP) }.expect("memory");
        send(&mut side, &transport.address());
        send(&mut side, &key.0);
        let (address, key) = (receive(&mut side), receive(&mut side));
        // The record of the other PE serves for both, since this PE does not use itself.
        let records = [PeRecord { address: &address, keys: [&key, &[], &[]] }; 2];
        let directory = Directory::new(Directory::encode(records.into_iter()));
        transport.connect(Arc::new(directory)).expect("an address");
        let endpoint = transport.endpoint().expect("an endpoint");
        // Last, so that the service thread may run on any processor, as in a job.
        run_on_processor(me);
        Bench { me, transport, endpoint, heap, side, runs, only, words_done: 0 }
    }

    fn meet(&mut self) {
        send(&mut self.side, &[]);
        receive(&mut self.side);
    }

    fn flag(&self, offset: usize) -> u64 {
        // SAFETY: an aligned word of the heap.
        unsafe { u64::fetch(self.heap.wrapping_add(offset).cast()) }
    }

    fn put_word(&mut self, offset: usize, word: u64) {
        let source = LocalBuf::source((&raw const word).cast(), 8);
        let put = Put { dest: at(offset), source, completion: Completion::Now };
        // SAFETY: a live local of 8 bytes.
        unsafe { self.endpoint.put(Pe(1 - self.me as u32), put) }.expect("a put");
    }

    fn quiet(&mut self) {
        self.endpoint.quiet().expect("a quiet");
    }

    /// PE 0 does `work` so often per run; PE 1 polls or computes meanwhile. Microseconds per
    /// `work`.
    fn one_sided(
        &mut self,
        rounds: usize,
        polls: bool,
        mut work: impl FnMut(&mut Bench),
    ) -> Vec<f64> {
        let mut figures = Vec::new();
        for _ in 0..self.runs {
            let done = self.flag(DONE);
            self.meet();
            if self.me == 1 {
                while self.flag(DONE) == done {
                    match polls {
                        true => drop(self.transport.progress().expect("no loss")),
                        false => std::hint::spin_loop(),
                    }
                }
                continue;
            }
            let start = Instant::now();
            for _ in 0..rounds {
                work(self);
            }
            self.quiet();
            figures.push(start.elapsed().as_secs_f64() * 1e6 / rounds as f64);
            self.words_done += 1;
            self.put_word(DONE, self.words_done);
            self.quiet();
        }
        figures
    }

    /// Measure and report a line, if it is wanted.
    fn line(&mut self, what: &str, unit: &str, measure: impl FnOnce(&mut Bench) -> Vec<f64>) {
        if what.contains(&self.only) {
            let figures = measure(self);
            if self.me == 0 {
                report(what, unit, figures);
            }
        }
    }

    fn run(mut self) {
        self.floor();
        for polls in [true, false] {
            let target = if polls { "target polls" } else { "target computes" };
            self.line(&format!("put+quiet, 8 bytes, {target}"), "us", |bench| {
                bench.one_sided(ROUNDS, polls, |bench| {
                    bench.put_word(DATA, 7);
                    bench.quiet();
                })
            });
            self.line(&format!("get, 8 bytes, {target}"), "us", |bench| {
                bench.one_sided(ROUNDS, polls, |bench| {
                    let mut word = 0u64;
                    let dest = LocalBuf { base: (&raw mut word).cast(), nbytes: 8 };
                    let get = Get { dest, source: at(DATA), completion: Completion::Now };
                    // SAFETY: a live local of 8 bytes.
                    unsafe { bench.endpoint.get(Pe(1), get) }.expect("a get");
                })
            });
            self.line(&format!("nbi puts of 8 bytes, {target}"), "M/s", |bench| {
                let figures = bench.one_sided(200 * ROUNDS, polls, |bench| {
                    let source = LocalBuf::source(bench.heap.wrapping_add(DATA), 8);
                    let put = Put { dest: at(DATA), source, completion: Completion::AtQuiet };
                    // SAFETY: 8 bytes of the heap.
                    unsafe { bench.endpoint.put(Pe(1), put) }.expect("a put");
                });
                figures.into_iter().map(|us| 1.0 / us).collect()
            });
            self.line(&format!("put+quiet, 1 MiB, {target}"), "us", |bench| {
                bench.one_sided(20, polls, |bench| {
                    let source = LocalBuf::source(bench.heap.wrapping_add(MIB), MIB);
                    let put = Put { dest: at(MIB), source, completion: Completion::Now };
                    // SAFETY: a mebibyte of the heap.
                    unsafe { bench.endpoint.put(Pe(1), put) }.expect("a put");
                    bench.quiet();
                })
            });
        }
        self.line("flag ping-pong, round trip", "us", Bench::ping_pong);
        self.meet();
    }

    fn ping_pong(&mut self) -> Vec<f64> {
        let mut figures = Vec::new();
        let mut round = 0;
        for _ in 0..self.runs {
            self.meet();
            let start = Instant::now();
            for _ in 0..ROUNDS {
                round += 1;
                if self.me == 0 {
                    self.put_word(FLAG, round);
                }
                while self.flag(FLAG) != round {
                    self.transport.progress().expect("no loss");
                }
                if self.me == 1 {
                    self.put_word(FLAG, round);
                }
            }
            self.quiet();
            figures.push(start.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
        }
        figures
    }

    /// Round trip of 8 bytes, and a mebibyte with an answer, on a plain socket that both poll.
    fn floor(&mut self) {
        let mut socket = if self.me == 0 {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("an address").port();
            send(&mut self.side, &port.to_le_bytes());
            listener.accept().expect("the other PE").0
        } else {
            let port = u16::from_le_bytes(receive(&mut self.side)[..2].try_into().expect("a port"));
            TcpStream::connect(("127.0.0.1", port)).expect("the other PE")
        };
        socket.set_nodelay(true).expect("a socket");
        socket.set_nonblocking(true).expect("a socket");
        let mut buffer = vec![0; MIB];
        for (what, nbytes, rounds) in
            [("floor: round trip, 8 bytes", 8, ROUNDS), ("floor: 1 MiB and an answer", MIB, 20)]
        {
            self.line(what, "us", |bench| {
                let mut figures = Vec::new();
                for _ in 0..bench.runs {
                    bench.meet();
                    let start = Instant::now();
                    for _ in 0..rounds {
                        if bench.me == 0 {
                            move_all(nbytes, |done| socket.write(&buffer[done..nbytes]));
                            move_all(8, |done| socket.read(&mut buffer[done..8]));
                        } else {
                            move_all(nbytes, |done| socket.read(&mut buffer[done..nbytes]));
                            move_all(8, |done| socket.write(&buffer[done..8]));
                        }
                    }
                    figures.push(start.elapsed().as_secs_f64() * 1e6 / rounds as f64);
                }
                figures
            });
        }
    }
}

fn move_all(nbytes: usize, mut step: impl FnMut(usize) -> std::io::Result<usize>) {
    let mut done = 0;
    while done < nbytes {
        match step(done) {
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(e) => panic!("{e}"),
        }
    }
}
