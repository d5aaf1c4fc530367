//! The program of the doctor's short jobs. As `host`, a PE reports on its machine and does not join
//! a job. As `pairs`, the first PEs of neighboring hosts connect to each other, then each PE to all
//! others, as far as time permits. Each report is a line with a mark.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use rushmem_runtime::setup::transport;
use rushmem_system::host::host_name;
use serde::{Deserialize, Serialize};
use shmem::{Atomic, Max, Min, Shmem, SymBox};

use super::finding::Section;
use super::outcome::line;
use super::transports;

/// Time after which a PE does not begin to write to another PE.
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
    /// The number of CPUs that a process may use at the same time.
    pub cpus: usize,
    pub sections: Vec<Section>,
}

/// The report of a PE of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum PairReport {
    /// By PE 0.
    Job {
        n_pes: usize,
        /// The path between the PEs.
        path: String,
        /// The longest `shmem_init`, in seconds.
        init: f64,
        /// The maximum difference between the clocks of PEs, in seconds. The error is about the
        /// time of a barrier.
        clocks: f64,
    },
    /// By the first PE of each host: the name that the host has for itself.
    Host(String),
    /// By the first PE of each pair.
    Pair {
        /// The PE that writes.
        from: usize,
        /// The PE to whose memory it writes.
        to: usize,
        /// The time of the first operation, which connects them, in seconds.
        first: f64,
    },
    /// By PE 0 of a job of more than two PEs: writes of each PE to all others, one after the other.
    AllPairs {
        /// The lowest number of PEs to which a PE has written within [`ALL_PAIRS`] in a round.
        n_others: usize,
        /// The longest time of a PE for the first round, in seconds.
        first: f64,
        /// The longest time of a PE for a second round, when all are connected, in seconds.
        again: f64,
    },
}

pub fn run(role: Role) -> Result<String, String> {
    match role {
        Role::Host => examine_host().map(|report| line(&report)),
        Role::Pairs => connect_pairs(),
    }
}

fn examine_host() -> Result<HostReport, String> {
    let executable = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = fs::read(&executable).map_err(|error| error.to_string())?;

    let mut digest = DefaultHasher::new();
    program.hash(&mut digest);
    // A build without the library beside it differs from one with it.
    let library = executable.join("../../lib/librushmem.so.1");
    fs::read(library).ok().hash(&mut digest);

    Ok(HostReport {
        host: host_name(),
        build: format!("{} ({:016x})", env!("CARGO_PKG_VERSION"), digest.finish()),
        cpus: rushmem_topology::cpus_at_once(),
        sections: transports::with_host()?,
    })
}

fn connect_pairs() -> Result<String, String> {
    let start = Instant::now();
    let shmem = shmem::init();
    let init = start.elapsed().as_secs_f64();
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();

    let leaders = leaders(&shmem);
    let is_leader = leaders.contains(&me);
    let mut ends = leaders;
    if ends.len() == 1 && n_pes > 1 {
        // On one node, the first and the last PE connect.
        ends = vec![0, n_pes - 1];
    }

    let word = shmem.boxed(me as u64);
    let count = shmem.atomic(0);
    let clocks = compare_clocks(&shmem);
    let init = shmem.world().all_reduce(init, Max);

    let mut text = String::new();
    if is_leader {
        text += &line(&PairReport::Host(host_name()));
    }
    if me == 0 {
        let path = transport(rushmem_runtime::call!("shmem-info"))
            .to_string_lossy()
            .into_owned();
        text += &line(&PairReport::Job {
            n_pes,
            path,
            init,
            clocks,
        });
    }

    for round in rounds(&ends) {
        shmem.barrier_all();
        if let Some(&PePair { from, to }) = round.iter().find(|pair| pair.from == me) {
            let first = connect(&shmem, &word, &count, to)?;
            text += &line(&PairReport::Pair { from, to, first });
        }
    }

    let first = write_to_all(&shmem, &word);
    let again = write_to_all(&shmem, &word);
    if me == 0 && n_pes > 2 {
        text += &line(&PairReport::AllPairs {
            n_others: first.n_others.min(again.n_others),
            first: first.seconds,
            again: again.seconds,
        });
    }
    Ok(text)
}

/// A round in which each PE writes to all others.
struct AllPairsRound {
    /// The lowest number of PEs to which a PE has written.
    n_others: usize,
    /// The longest time of a PE.
    seconds: f64,
}

/// Lets each PE write to all others, one after the other, until [`ALL_PAIRS`] has passed.
fn write_to_all(shmem: &Shmem, word: &SymBox<'_, u64>) -> AllPairsRound {
    shmem.barrier_all();

    let start = Instant::now();
    let mut n_others = 0;
    // Each PE begins behind itself, so that not all write to PE 0 at the same time.
    for other in shmem.peers_from_me().skip(1) {
        if start.elapsed() >= ALL_PAIRS {
            break;
        }

        n_others += 1;
        word.on(other).write(0);
        shmem.quiet();
    }
    let seconds = start.elapsed().as_secs_f64();

    let world = shmem.world();
    AllPairsRound {
        n_others: world.all_reduce(n_others, Min),
        seconds: world.all_reduce(seconds, Max),
    }
}

/// Returns the first PE of each node.
fn leaders(shmem: &Shmem) -> Vec<usize> {
    let is_first = u8::from(shmem.shared().my_pe() == 0);
    let are_first = shmem.world().all_gather(is_first);
    let mut leaders = Vec::new();
    for (pe, is_first) in are_first.into_iter().enumerate() {
        if is_first != 0 {
            leaders.push(pe);
        }
    }
    leaders
}

/// Returns the maximum difference in seconds between the clocks of PEs, which they read after a
/// barrier.
fn compare_clocks(shmem: &Shmem) -> f64 {
    shmem.barrier_all();
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    // A clock that is before 1970 differs from the others in any case.
    let now = since_epoch.unwrap_or_default().as_secs_f64();

    let world = shmem.world();
    // The maximum of the negative times is the minimum.
    world.all_reduce(now, Max) + world.all_reduce(-now, Max)
}

/// Two PEs that connect.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PePair {
    /// The PE that connects, by a write to `to`.
    from: usize,
    to: usize,
}

/// Returns the pairs of PEs that connect, in rounds: neighbors in `leaders`, and its first and last
/// PE. No PE is in two pairs of a round.
fn rounds(leaders: &[usize]) -> Vec<Vec<PePair>> {
    let mut even = Vec::new();
    let mut odd = Vec::new();
    for (i, two) in leaders.windows(2).enumerate() {
        let round = if i.is_multiple_of(2) {
            &mut even
        } else {
            &mut odd
        };
        round.push(PePair {
            from: two[0],
            to: two[1],
        });
    }

    let mut ends = Vec::new();
    // The first and the last of two PEs are neighbors already.
    if let [first, _, .., last] = *leaders {
        ends.push(PePair {
            from: first,
            to: last,
        });
    }

    let mut rounds = vec![even, odd, ends];
    rounds.retain(|round| !round.is_empty());
    rounds
}

/// Writes to a PE for the first time, which connects to it. Checks the memory of the PE after the
/// write and after an atomic operation. Returns the time of the write in seconds.
fn connect(
    shmem: &Shmem,
    word: &SymBox<'_, u64>,
    count: &SymBox<'_, Atomic<u64>>,
    pe: usize,
) -> Result<f64, String> {
    // A value that no other PE sends, and that is not the initial one.
    let sent = (shmem.my_pe() as u64) << 32 | 0x5EED;
    let peer = shmem.pe(pe);

    let start = Instant::now();
    word.on(peer).write(sent);
    shmem.quiet();
    let seconds = start.elapsed().as_secs_f64();

    let found = word.on(peer).read();
    if found != sent {
        return Err(format!("PE {pe} holds {found:#x} after a put of {sent:#x}"));
    }

    let before = count.on(peer).fetch_add(1);
    let after = count.on(peer).load();
    if after != before + 1 {
        return Err(format!(
            "PE {pe} holds {after} after an increment of {before}"
        ));
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pe_is_in_two_pairs_of_a_round() {
        let pair = |from, to| PePair { from, to };
        assert!(rounds(&[0]).is_empty());
        assert_eq!(rounds(&[0, 4]), [[pair(0, 4)]]);
        assert_eq!(
            rounds(&[0, 4, 8]),
            [[pair(0, 4)], [pair(4, 8)], [pair(0, 8)]]
        );

        let many = rounds(&[0, 1, 2, 3, 4]);
        assert_eq!(many[0], [pair(0, 1), pair(2, 3)]);
        assert_eq!(many[1], [pair(1, 2), pair(3, 4)]);
        assert_eq!(many[2..], [[pair(0, 4)]]);
    }
}
