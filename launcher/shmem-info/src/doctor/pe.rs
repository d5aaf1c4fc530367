//! The program of the doctor's short jobs. As `host` a PE reports its machine and does not join a
//! job; as `pairs` PEs move data between the first PEs of the hosts, and then each to all. Each
//! report is a line with a mark.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use rushmem_runtime::setup::transport;
use rustix::system::uname;
use serde::{Deserialize, Serialize};
use shmem::{Atomic, Max, Min, Shmem, SymArray, SymBox};

use super::finding::Section;
use super::outcome::line;
use super::socket::{self, each};
use super::transports;

/// Repetitions of a transfer of one word, unless they take too long.
const REPETITIONS: u32 = 300;
/// Puts for the bandwidth, unless they take longer.
const PUTS: u32 = 256;
/// Bytes of each of them.
const PUT: usize = 64 << 10;

/// The time that a PE may take to write to one PE after the other.
const ALL_PAIRS: Duration = Duration::from_secs(5);

/// The role of a PE of the doctor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    Host,
    Pairs,
}

/// The report of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostReport {
    /// The name that the host has for itself.
    pub host: String,
    /// The version, and a digest of the executable and the library beside it.
    pub build: String,
    pub cpus: usize,
    pub sections: Vec<Section>,
}

/// The report of a PE of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum PairReport {
    /// By PE 0.
    Job {
        n_pes: u32,
        /// The path between the PEs.
        path: String,
        /// The longest `shmem_init`, in seconds.
        init: f64,
        /// The maximum difference between clocks of hosts, in seconds, with an error of about as
        /// long as a barrier takes.
        clocks: f64,
    },
    /// By the first PE of each host: the name that the host has for itself.
    Host(String),
    /// By the first PE of each pair.
    Pair(Pair),
    /// By PE 0: writes of each PE to all others, one after the other.
    AllPairs {
        /// To how many PEs one wrote until its time was over, at least.
        n_others: u32,
        /// The longest time for all, in seconds.
        first: f64,
        /// The time of a second round, when all are connected.
        again: f64,
    },
}

/// Times between two PEs, in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pair {
    pub pes: (u32, u32),
    /// The first operation, which connects them.
    pub first: f64,
    pub put: f64,
    pub get: f64,
    pub amo: f64,
    /// Bytes per second of puts.
    pub bandwidth: f64,
    /// A round trip over a socket, and its bytes per second; none if no connection could be made.
    pub socket: Option<(f64, f64)>,
}

pub fn run(role: Role) -> Result<String, String> {
    match role {
        Role::Host => host().map(|report| line(&report)),
        Role::Pairs => pairs(),
    }
}

fn host_name() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

fn host() -> Result<HostReport, String> {
    let executable = std::env::current_exe().map_err(|error| error.to_string())?;
    let library = executable.join("../../lib/librushmem.so.1");
    let mut digest = DefaultHasher::new();
    fs::read(&executable).map_err(|error| error.to_string())?.hash(&mut digest);
    fs::read(library).ok().hash(&mut digest);
    Ok(HostReport {
        host: host_name(),
        build: format!("{} ({:016x})", env!("CARGO_PKG_VERSION"), digest.finish()),
        cpus: rushmem_topology::cpus_at_once(),
        sections: transports::with_host()?,
    })
}

/// The symmetric objects of the measurements.
struct Objects<'s> {
    word: SymBox<'s, u64>,
    count: SymBox<'s, Atomic<u64>>,
    block: SymArray<'s, u8>,
    /// The place where a PE accepts a socket, as text.
    place: SymArray<'s, u8>,
}

fn pairs() -> Result<String, String> {
    let start = Instant::now();
    let shmem = shmem::init();
    let init = start.elapsed().as_secs_f64();
    let (me, n_pes) = (shmem.my_pe(), shmem.n_pes());
    // On one node the first and the last PE.
    let leaders = leaders(&shmem);
    let is_leader = leaders.contains(&me);
    let ends = if leaders.len() == 1 && n_pes > 1 { vec![0, n_pes - 1] } else { leaders };
    let one_host = is_one_host(&shmem);
    let objects = Objects {
        word: shmem.boxed(u64::from(me)),
        count: shmem.atomic(0),
        block: shmem.array(PUT),
        place: shmem.array(socket::PLACE),
    };
    let listener = socket::Listener::new(one_host);
    objects.place.copy_from_slice(&listener.as_ref().map_or([0; socket::PLACE], |it| it.place()));
    if let Some(listener) = listener {
        listener.serve();
    }
    let clocks = clocks(&shmem);
    let init = shmem.world().reduce_value(Max, init);
    let mut text = String::new();
    if is_leader {
        text += &line(&PairReport::Host(host_name()));
    }
    if me == 0 {
        let path = transport(rushmem_runtime::call!("shmem-info")).to_string_lossy().into_owned();
        text += &line(&PairReport::Job { n_pes, path, init, clocks });
    }
    for round in rounds(&ends) {
        shmem.barrier_all();
        if let Some(&(_, target)) = round.iter().find(|(origin, _)| *origin == me) {
            text += &line(&PairReport::Pair(measured(&shmem, &objects, target)?));
        }
    }
    let first = written_to_all(&shmem, &objects.word);
    let again = written_to_all(&shmem, &objects.word);
    if me == 0 && n_pes > 2 {
        let n_others = first.0.min(again.0);
        text += &line(&PairReport::AllPairs { n_others, first: first.1, again: again.1 });
    }
    Ok(text)
}

/// Returns the longest time in which a PE writes to all others, and to how many the slowest one
/// does.
fn written_to_all(shmem: &Shmem, word: &SymBox<'_, u64>) -> (u32, f64) {
    let (me, n_pes) = (shmem.my_pe(), shmem.n_pes());
    shmem.barrier_all();
    let (start, mut n_others) = (Instant::now(), 0);
    while n_others < n_pes - 1 && start.elapsed() < ALL_PAIRS {
        n_others += 1;
        shmem.p(word, 0, (me + n_others) % n_pes);
        shmem.quiet();
    }
    let seconds = start.elapsed().as_secs_f64();
    (shmem.world().reduce_value(Min, n_others), shmem.world().reduce_value(Max, seconds))
}

/// Returns the first PE of each node.
fn leaders(shmem: &Shmem) -> Vec<u32> {
    let (own, all) = (
        shmem.boxed(u8::from(shmem.shared().my_pe() == 0)),
        shmem.array::<u8>(shmem.n_pes() as usize),
    );
    shmem.world().fcollect(&all, &own);
    let first = all.to_vec().into_iter().zip(0..);
    first.filter(|(is_first, _)| *is_first != 0).map(|(_, pe)| pe).collect()
}

/// Returns true if the hosts of all PEs have the same name.
fn is_one_host(shmem: &Shmem) -> bool {
    let mut digest = DefaultHasher::new();
    host_name().hash(&mut digest);
    let own = digest.finish();
    let world = shmem.world();
    // All PEs take part in both.
    let (greatest, least) = (world.reduce_value(Max, own), !world.reduce_value(Max, !own));
    greatest == least
}

/// Returns the maximum difference between clocks after a barrier, in seconds.
fn clocks(shmem: &Shmem) -> f64 {
    shmem.barrier_all();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let world = shmem.world();
    world.reduce_value(Max, now) + world.reduce_value(Max, -now)
}

/// Pairs of neighbors, and of the first and the last one. No PE is in two pairs of a round.
fn rounds(leaders: &[u32]) -> Vec<Vec<(u32, u32)>> {
    let neighbors: Vec<(u32, u32)> = leaders.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let every_second = |from| neighbors.iter().copied().skip(from).step_by(2).collect();
    let ends = match leaders {
        [first, _, .., last] => vec![(*first, *last)],
        _ => Vec::new(),
    };
    [every_second(0), every_second(1), ends].into_iter().filter(|round| !round.is_empty()).collect()
}

fn measured(shmem: &Shmem, objects: &Objects<'_>, pe: u32) -> Result<Pair, String> {
    let Objects { word, count, block, place } = objects;
    let me = shmem.my_pe();
    let sent = u64::from(me) << 32 | 0x5EED;
    let start = Instant::now();
    shmem.p(word, sent, pe);
    shmem.quiet();
    let first = start.elapsed().as_secs_f64();
    let found = shmem.g(word, pe);
    if found != sent {
        return Err(format!("PE {pe} holds {found:#x} after a put of {sent:#x}"));
    }
    let put = each(REPETITIONS, || {
        shmem.p(word, sent, pe);
        shmem.quiet();
    });
    let get = each(REPETITIONS, || {
        std::hint::black_box(shmem.g(word, pe));
    });
    let before = shmem.fetch(count, pe);
    let mut added = 0;
    let amo = each(REPETITIONS, || {
        shmem.fetch_inc(count, pe);
        added += 1;
    });
    let after = shmem.fetch(count, pe);
    if after != before + added {
        return Err(format!("PE {pe} holds {after} after {added} increments of {before}"));
    }
    let bytes = vec![1; PUT];
    let seconds = each(PUTS, || shmem.put(block, &bytes, pe));
    shmem.quiet();
    let mut there = [0; socket::PLACE];
    shmem.get(&mut there, place, pe);
    Ok(Pair {
        pes: (me, pe),
        first,
        put,
        get,
        amo,
        bandwidth: PUT as f64 / seconds,
        socket: socket::measured(&there),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pe_is_in_two_pairs_of_a_round() {
        assert!(rounds(&[0]).is_empty());
        assert_eq!(rounds(&[0, 4]), [[(0, 4)]]);
        assert_eq!(rounds(&[0, 4, 8]), [vec![(0, 4)], vec![(4, 8)], vec![(0, 8)]]);
        let many = rounds(&[0, 1, 2, 3, 4]);
        assert_eq!(many, [vec![(0, 1), (2, 3)], vec![(1, 2), (3, 4)], vec![(0, 4)]]);
    }
}
