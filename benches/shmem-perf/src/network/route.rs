//! The operations that each network must have between two PEs, the memory for them, and the NIC that a
//! PE prefers, by the variable in which `oshrun` passes it on: a floor goes over the same one as the
//! library.

use std::env;
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};

use crate::library::Joined;

/// The facts about a PE that a peer needs.
#[derive(Clone, Serialize, Deserialize)]
pub struct Contact {
    /// Its address.
    pub name: Vec<u8>,
    /// The start of its memory.
    pub base: u64,
    /// The key of its memory's registration.
    pub key: Vec<u8>,
}

/// A connection by a network to the memory of the other PE.
pub trait NetworkRoute {
    /// Returns what the other PE needs to connect.
    fn contact(&self) -> Result<Contact, String>;
    fn connect(&mut self, contact: &Contact) -> Result<(), String>;
    /// Starts to write `nbytes` bytes from offset `from` of this PE's memory to offset `to` of the
    /// other PE's.
    fn put(&mut self, from: usize, to: usize, nbytes: usize) -> Result<(), String>;
    /// Starts to read `nbytes` bytes from offset `from` of the other PE's memory to offset `to` of
    /// this PE's.
    fn get(&mut self, from: usize, to: usize, nbytes: usize) -> Result<(), String>;
    /// Waits until all started operations are complete, also at the other PE.
    fn complete(&mut self) -> Result<(), String>;
    /// Polls the network. If there was nothing to do and PEs are not to spin, yields the CPU.
    fn progress(&mut self) -> Result<(), String>;
    /// Returns the transports and devices that it uses, in words.
    fn path(&self) -> String;
}

/// Symmetric memory that both PEs write and read: the word that ends a measurement, the word whose
/// value is written there, the target, and the source.
#[derive(Clone, Copy)]
pub struct TransferMemory {
    words: &'static [AtomicU64],
}

/// Offset of the word that ends a measurement when the leader writes it.
pub const END: usize = 0;
/// Offset of the word whose value the leader writes there.
pub const END_SOURCE: usize = 64;
/// Offset of the target.
pub const TARGET: usize = 4096;

impl TransferMemory {
    /// Allocates room for transfers of `nbytes` bytes in the symmetric heap, as for the targets of
    /// the library. All PEs call it, and all get none if there is no room.
    pub fn new(library: &Joined<'_>, nbytes: usize) -> Option<Self> {
        let n_words = (source(nbytes) + nbytes).div_ceil(8);
        library.reserve(n_words).map(|words| Self { words })
    }

    pub fn base(self) -> *mut u8 {
        self.words.as_ptr().cast_mut().cast()
    }

    pub fn nbytes(self) -> usize {
        size_of_val(self.words)
    }

    pub fn word(self, offset: usize) -> &'static AtomicU64 {
        &self.words[offset / 8]
    }
}

/// Returns the offset of the source in a region for transfers of `most` bytes.
pub fn source(most: usize) -> usize {
    TARGET + most.next_multiple_of(4096)
}

/// The preferred device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// A NIC with its port, such as `mlx5_0:1`.
    pub port: Option<String>,
    /// The names of the NIC and of its interface.
    names: Vec<String>,
    pub is_one_host: bool,
}

impl Preference {
    pub fn of_this_pe(is_one_host: bool) -> Self {
        Self::parse(&env::var("SHMEM_NIC").unwrap_or_default(), is_one_host)
    }

    fn parse(text: &str, is_one_host: bool) -> Self {
        let (nic, interface) = text.split_once(',').unwrap_or((text, ""));
        let name = nic.split(':').next().unwrap_or(nic);
        let port = nic.contains(':').then(|| nic.to_owned());
        let names = [name, interface].into_iter().filter(|name| !matches!(*name, "" | "any"));
        Self { port, names: names.map(str::to_owned).collect(), is_one_host }
    }

    /// Returns the rank of a device among those of one provider; the one with the lowest is used.
    pub fn rank(&self, device: &str) -> (bool, bool) {
        let is_near = self.names.iter().any(|name| name == device);
        (self.is_one_host && device != "lo", !is_near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first<'a>(nic: &str, is_one_host: bool, devices: &[&'a str]) -> &'a str {
        let preference = Preference::parse(nic, is_one_host);
        devices.iter().min_by_key(|device| preference.rank(device)).expect("a device")
    }

    #[test]
    fn the_nic_and_its_interface_are_preferred() {
        assert_eq!(first("mlx5_1:1,ib1", false, &["mlx5_0", "mlx5_1"]), "mlx5_1");
        assert_eq!(first("cxi2,hsn2", false, &["hsn0", "hsn2"]), "hsn2");
        assert_eq!(first("any", false, &["eth0", "lo"]), "eth0");
        assert_eq!(first("", true, &["eth0", "lo"]), "lo");
        assert_eq!(Preference::parse("mlx5_1:1,ib1", false).port.as_deref(), Some("mlx5_1:1"));
        assert_eq!(Preference::parse("any", true).port, None);
    }
}
