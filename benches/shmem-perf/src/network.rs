//! What UCX and libfabric take by themselves between two PEs: the floors of a library that is connected by them.
//!
//! The one that leads writes and reads memory of the other one, which lets the network work meanwhile. A word there, which the leader
//! writes last, ends both. Nothing is ever closed: that would need the other PE once more, and the kernel does it when the process ends.
//! Both libraries are opened at run time; where one is missing there is no floor. This file must never know what their functions are called.

mod device;
mod libfabric;
mod route;
mod ucx;

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use self::device::Preference;
use self::route::{Contact, END, END_SOURCE, Region, Route, TARGET, source};
use crate::wire::{Exchange, Way, Wire};
use crate::world::World;

/// Libraries whose floors are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Network {
    /// UCX: its layer UCP.
    Ucx,
    /// libfabric.
    Libfabric,
}

impl Network {
    /// Each.
    pub const ALL: [Self; 2] = [Self::Ucx, Self::Libfabric];

    /// The one that a transport of Rushmem's goes over.
    pub fn of_transport(name: &str) -> Option<Self> {
        match name {
            "ucx" => Some(Self::Ucx),
            "ofi" => Some(Self::Libfabric),
            _ => None,
        }
    }

    /// What its functions are called that go each way.
    pub fn transfers(self) -> [(Way, &'static str); 2] {
        match self {
            Self::Ucx => [(Way::Put, "ucp_put"), (Way::Get, "ucp_get")],
            Self::Libfabric => [(Way::Put, "fi_write"), (Way::Get, "fi_read")],
        }
    }
}

/// How long the leader lets the network carry its last word, which nobody confirms: the other PE no longer works for it.
const LAST_WORD: Duration = Duration::from_millis(1);

/// Two PEs, connected by a network.
pub struct Connection {
    route: Box<dyn Route>,
    memory: Region,
    source: usize,
    /// Points that have ended.
    n_ended: u64,
    /// What it goes over, in words.
    pub path: String,
}

impl Connection {
    /// Connects two PEs for transfers of at most so many bytes. PEs that do not spin let others run between two looks. All PEs call it;
    /// those that are not of the pair, and all if it fails, get nothing.
    pub fn open(
        world: &World<'_>,
        (from, to): (u32, u32),
        network: Network,
        most: u64,
        is_one_host: bool,
        spins: bool,
    ) -> Option<Self> {
        let preference = Preference::of_this_pe(is_one_host);
        let is_of_pair = world.me == from || world.me == to;
        let memory = Region::new(&world.library, most as usize)?;
        let open = || -> Result<(Box<dyn Route>, Contact), String> {
            let route: Box<dyn Route> = match network {
                Network::Ucx => Box::new(ucx::Ucp::open(memory, &preference, spins)?),
                Network::Libfabric => {
                    Box::new(libfabric::Endpoint::open(memory, &preference, spins)?)
                }
            };
            let contact = route.contact()?;
            Ok((route, contact))
        };
        let own = is_of_pair.then(open).and_then(Result::ok);
        let own_contact: Option<Contact> = own.as_ref().map(|(_, contact)| contact.clone());
        let contacts: [Option<Contact>; 2] =
            [world.share(from, Some(&own_contact)), world.share(to, Some(&own_contact))];
        let peers = if world.me == from { &contacts[1] } else { &contacts[0] };
        let mut route = own.map(|(route, _)| route);
        let is_connected = match (&mut route, peers) {
            (Some(route), Some(contact)) => route.connect(contact).is_ok(),
            _ => false,
        };
        let ends: [bool; 2] = [from, to].map(|pe| world.share(pe, Some(&is_connected)));
        let route = route.filter(|_| ends == [true, true])?;
        let [(_, put), (_, get)] = network.transfers();
        let waits = if spins { "poll" } else { "poll and let others run" };
        let path = format!("{put} and {get} go over {}; their PEs {waits}", route.path());
        Some(Self { route, memory, source: source(most as usize), n_ended: 0, path })
    }
}

impl Wire for Connection {
    fn lead(&mut self, exchange: Exchange, samples: u64, group: u64) -> io::Result<Vec<u64>> {
        let mut window = || -> Result<(), String> {
            for _ in 0..exchange.window {
                let nbytes = exchange.nbytes as usize;
                match exchange.way {
                    Way::Get => self.route.get(TARGET, self.source, nbytes)?,
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
        self.memory.word(END_SOURCE).store(self.n_ended, Ordering::Release);
        self.route.put(END_SOURCE, END, size_of::<u64>()).map_err(io::Error::other)?;
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
