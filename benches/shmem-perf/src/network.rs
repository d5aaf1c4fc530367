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

use self::route::{
    Contact, END, END_SOURCE, NetworkRoute, Preference, TARGET, TransferMemory, source,
};
use crate::job::BenchJob;
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

    /// Returns the names of the floors, each after the library's function, by direction.
    pub fn transfers(self) -> [(Direction, &'static str); 2] {
        match self {
            Self::Ucx => [(Direction::Put, "ucp_put"), (Direction::Get, "ucp_get")],
            Self::Libfabric => [(Direction::Put, "fi_write"), (Direction::Get, "fi_read")],
        }
    }
}

/// How long the leader polls after it has written the word that ends a measurement. It cannot wait
/// for completion, because the follower stops polling once it has read the word.
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

impl ConnectedPair {
    /// Connects the two PEs of a pair for transfers of at most `most` bytes. Unless `spins`, they
    /// yield the CPU between polls. All PEs call it. Returns no connection on other PEs, and on all
    /// if it fails. Returns the same sentence on all PEs: the path of the connection, or why it
    /// fails.
    pub fn open(
        job: &BenchJob<'_>,
        (from, to): (u32, u32),
        network: Network,
        most: u64,
        is_one_host: bool,
        spins: bool,
    ) -> (Option<Self>, String) {
        let [(_, put), (_, get)] = network.transfers();
        let left_out = |why: &str| (None, format!("{put} and {get} are left out: {why}"));
        let Some(memory) = TransferMemory::new(&job.library, most as usize) else {
            return left_out("the symmetric heap has no room for them");
        };

        // All PEs take part in each exchange below, whether they have failed or not.
        let preference = Preference::from_environment(is_one_host);
        let open = || -> Result<(Box<dyn NetworkRoute>, Contact), String> {
            let route: Box<dyn NetworkRoute> = match network {
                Network::Ucx => Box::new(ucx::UcxRoute::open(memory, &preference, spins)?),
                Network::Libfabric => {
                    Box::new(libfabric::LibfabricRoute::open(memory, &preference, spins)?)
                }
            };
            let contact = route.contact()?;
            Ok((route, contact))
        };
        let own = (job.me == from || job.me == to).then(open);

        let contact = match &own {
            Some(Ok((_, contact))) => Some(Ok(contact.clone())),
            Some(Err(why)) => Some(Err(why.clone())),
            None => None,
        };
        let [of_from, of_to] = match share_of_both(job, (from, to), contact) {
            Ok(contacts) => contacts,
            Err(why) => return left_out(&why),
        };

        let mut route = own.and_then(Result::ok).map(|(route, _)| route);
        let peers = if job.me == from { of_to } else { of_from };
        let path = route
            .as_mut()
            .map(|route| route.connect(&peers).map(|()| route.path()));
        let [path, _] = match share_of_both(job, (from, to), path) {
            Ok(paths) => paths,
            Err(why) => return left_out(&why),
        };

        let own = route.map(|route| Self {
            route,
            memory,
            source: source(most as usize),
            n_ended: 0,
        });
        let waits = if spins {
            "poll"
        } else {
            "poll and let others run"
        };
        (
            own,
            format!("{put} and {get} go over {path}; their PEs {waits}"),
        )
    }
}

/// Returns on all PEs the values of the two PEs of a pair, or the error of one of them. All PEs
/// call it; other PEs pass `None`.
fn share_of_both<T: Serialize + DeserializeOwned>(
    job: &BenchJob<'_>,
    (from, to): (u32, u32),
    own: Option<Result<T, String>>,
) -> Result<[T; 2], String> {
    let share_of = |pe| -> Result<T, String> {
        let shared: Option<Result<T, String>> = job.share(pe, Some(&own));
        shared.unwrap_or_else(|| Err(format!("PE {pe} has none")))
    };
    // Both are shared before an error is returned: all PEs take part.
    let first = share_of(from);
    let second = share_of(to);
    Ok([first?, second?])
}

impl BareWire for ConnectedPair {
    fn lead(&mut self, exchange: Exchange, samples: u64, group: u64) -> io::Result<Vec<u64>> {
        let mut window = || -> Result<(), String> {
            for _ in 0..exchange.window {
                let nbytes = exchange.nbytes as usize;
                match exchange.direction {
                    Direction::Get => self.route.get(TARGET, self.source, nbytes)?,
                    _ => self.route.put(self.source, TARGET, nbytes)?,
                }
            }
            self.route.complete()
        };

        let mut times = Vec::with_capacity(samples as usize);
        for _ in 0..samples {
            let start = Instant::now();
            for _ in 0..group {
                window().map_err(io::Error::other)?;
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
