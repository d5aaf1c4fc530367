//! Measures UCX and libfabric directly between two PEs: the floors of a library that connects PEs
//! by one of them.
//!
//! The leader writes and reads memory of the follower, which polls the network meanwhile. To end a
//! measurement, the leader writes a word of that memory. Connections are never closed: that would
//! need the cooperation of the other PE, and the kernel does it when the process ends. Both
//! libraries are opened at run time; if one is missing, its floors are left out.

mod libfabric;
mod route;
mod ucx;

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::route::{END, END_SOURCE, NetworkRoute, Preference, TARGET, TransferMemory, source};
use crate::job::BenchJob;
use crate::record::Pair;
use crate::wire::{BareWire, Direction, Exchange};

/// A library for networks that can be measured directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Network {
    /// UCX, by its UCP layer.
    Ucx,
    Libfabric,
}

impl Network {
    pub const ALL: [Self; 2] = [Self::Ucx, Self::Libfabric];

    /// Returns the network in the text of a path as Rushmem reports it, such as `shared memory on a
    /// node, ucx between nodes`; `None` if the path uses neither.
    pub fn of_path(path: &str) -> Option<Self> {
        path.split([' ', ':']).find_map(|word| match word {
            "ucx" => Some(Self::Ucx),
            "ofi" => Some(Self::Libfabric),
            _ => None,
        })
    }

    /// Returns the name of the floor of writes, which is that of the library's function.
    pub fn put_name(self) -> &'static str {
        match self {
            Self::Ucx => "ucp_put",
            Self::Libfabric => "fi_write",
        }
    }

    /// Returns the name of the floor of reads.
    pub fn get_name(self) -> &'static str {
        match self {
            Self::Ucx => "ucp_get",
            Self::Libfabric => "fi_read",
        }
    }

    fn open_route(
        self,
        memory: TransferMemory,
        preference: &Preference,
        spins: bool,
    ) -> Result<Box<dyn NetworkRoute>, String> {
        Ok(match self {
            Self::Ucx => Box::new(ucx::UcxRoute::open(memory, preference, spins)?),
            Self::Libfabric => {
                Box::new(libfabric::LibfabricRoute::open(memory, preference, spins)?)
            }
        })
    }
}

/// How long the leader polls after it has written the word that ends a measurement. It cannot wait
/// for completion, because the follower stops polling once it has read the word. If the network
/// needs the leader to send the word, and needs longer than this, the follower waits forever.
const LAST_WORD: Duration = Duration::from_millis(1);

/// One PE's end of a connection of two PEs by a network.
pub struct ConnectedPair {
    route: Box<dyn NetworkRoute>,
    memory: TransferMemory,
    /// Offset of the source in `memory`.
    source: usize,
    /// The number of measurements that have ended. The word that ends the next one is this plus 1.
    n_ended: u64,
}

/// What the transfers of a pair need.
#[derive(Clone, Copy)]
pub struct TransferNeeds {
    /// The maximum size of a transfer in bytes.
    pub most_bytes: u64,
    /// True if all PEs of the job are on one host.
    pub is_one_host: bool,
    /// True if the PEs keep their CPUs between polls, false if they yield them.
    pub spins: bool,
}

/// The outcome of connecting a pair.
pub struct OpenedPair {
    /// This PE's end; `None` on other PEs, and on all PEs if it failed.
    pub connection: Option<ConnectedPair>,
    /// A sentence, equal on all PEs: the path of the connection, or why it failed.
    pub path: String,
}

impl ConnectedPair {
    /// Connects the two PEs of a pair. All PEs call it.
    pub fn open(
        job: &BenchJob<'_>,
        pair: Pair,
        network: Network,
        needs: TransferNeeds,
    ) -> OpenedPair {
        Self::connect(job, pair, network, needs).unwrap_or_else(|why| OpenedPair {
            connection: None,
            path: format!(
                "{} and {} are left out: {why}",
                network.put_name(),
                network.get_name()
            ),
        })
    }

    /// Connects the pair, or returns on all PEs why that fails.
    fn connect(
        job: &BenchJob<'_>,
        pair: Pair,
        network: Network,
        needs: TransferNeeds,
    ) -> Result<OpenedPair, String> {
        let most_bytes = needs.most_bytes as usize;
        let memory = TransferMemory::new(&job.library, most_bytes)
            .ok_or("the symmetric heap has no room for them")?;

        // All PEs take part in each exchange below, whether they have failed or not.
        let mut route = None;
        let mut contact = None;
        if job.me == pair.from || job.me == pair.to {
            let preference = Preference::from_environment(needs.is_one_host);
            match network.open_route(memory, &preference, needs.spins) {
                Ok(opened) => {
                    contact = Some(opened.contact());
                    route = Some(opened);
                }
                Err(why) => contact = Some(Err(why)),
            }
        }
        let [of_from, of_to] = share_of_both(job, pair, contact)?;

        let mut path = None;
        if let Some(route) = &mut route {
            let peer = if job.me == pair.from { of_to } else { of_from };
            path = Some(route.connect(&peer).map(|()| route.path()));
        }
        let [path, _] = share_of_both(job, pair, path)?;

        let waits = if needs.spins {
            "poll"
        } else {
            "poll and let others run"
        };
        Ok(OpenedPair {
            connection: route.map(|route| Self {
                route,
                memory,
                source: source(most_bytes),
                n_ended: 0,
            }),
            path: format!(
                "{} and {} go over {path}; their PEs {waits}",
                network.put_name(),
                network.get_name()
            ),
        })
    }

    /// Transfers a window, and waits for its completion.
    fn transfer(&mut self, exchange: Exchange) -> Result<(), String> {
        let nbytes = exchange.nbytes as usize;
        for _ in 0..exchange.window {
            match exchange.direction {
                Direction::Put => self.route.put(self.source, TARGET, nbytes)?,
                Direction::Get => self.route.get(TARGET, self.source, nbytes)?,
                Direction::Stream | Direction::RoundTrip => {
                    unreachable!("only a socket has messages")
                }
            }
        }
        self.route.complete()
    }
}

/// Returns on all PEs the values of the two PEs of a pair, or the error of one of them. All PEs
/// call it; other PEs pass `None`.
fn share_of_both<T: Serialize + DeserializeOwned>(
    job: &BenchJob<'_>,
    pair: Pair,
    own: Option<Result<T, String>>,
) -> Result<[T; 2], String> {
    // Both are shared before an error is returned: all PEs take part.
    let shared = [pair.from, pair.to].map(|pe| job.share(pe, Some(&own)));
    let [Some(of_from), Some(of_to)] = shared else {
        unreachable!("both PEs of the pair pass a value")
    };
    Ok([of_from?, of_to?])
}

impl BareWire for ConnectedPair {
    fn lead(&mut self, exchange: Exchange, samples: u64, group: u64) -> io::Result<Vec<u64>> {
        let mut times = Vec::with_capacity(samples as usize);
        for _ in 0..samples {
            let start = Instant::now();
            for _ in 0..group {
                self.transfer(exchange).map_err(io::Error::other)?;
            }
            times.push(start.elapsed().as_nanos() as u64);
        }
        Ok(times)
    }

    fn end(&mut self, _: Exchange) -> io::Result<()> {
        self.n_ended += 1;
        self.memory
            .word(END_SOURCE)
            .store(self.n_ended, Ordering::Release);
        self.route
            .put(END_SOURCE, END, size_of::<u64>())
            .map_err(io::Error::other)?;

        // The peer needs its CPU to see the word, and some networks this PE to send it.
        let start = Instant::now();
        while start.elapsed() < LAST_WORD {
            self.route.progress().map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn follow(&mut self, _: Exchange) -> io::Result<()> {
        self.n_ended += 1;
        while self.memory.word(END).load(Ordering::Acquire) != self.n_ended {
            self.route.progress().map_err(io::Error::other)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_of_a_path_is_that_between_nodes() {
        for (path, network) in [
            ("ucx", Some(Network::Ucx)),
            (
                "shared memory on a node, ofi between nodes",
                Some(Network::Libfabric),
            ),
            ("tcp", None),
            ("shared memory", None),
        ] {
            assert_eq!(Network::of_path(path), network, "{path}");
        }
    }
}
