//! The interface that each network implements between two PEs, the memory that its operations
//! access, and the NIC that a PE prefers. The preference is read from `SHMEM_NIC`, by which
//! `oshrun` assigns NICs to PEs, so that a floor uses the same NIC as the library.

use std::env;
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};

use crate::library::Joined;

/// What a PE needs to know to access the memory of its peer.
#[derive(Clone, Serialize, Deserialize)]
pub struct Contact {
    /// The address of the peer's endpoint or worker.
    pub name: Vec<u8>,
    /// The remote address of the start of the peer's memory; 0 if the network addresses it by
    /// offsets.
    pub base: u64,
    /// The remote key of the peer's memory.
    pub key: Vec<u8>,
}

/// A connection by a network to the memory of the other PE. Errors are the network's messages.
pub trait NetworkRoute {
    /// Returns what the other PE passes to `connect`.
    fn contact(&self) -> Result<Contact, String>;
    /// Connects to the other PE, before any transfer.
    fn connect(&mut self, contact: &Contact) -> Result<(), String>;
    /// Starts to write `nbytes` bytes from offset `from` of this PE's memory to offset `to` of the
    /// other PE's.
    fn put(&mut self, from: usize, to: usize, nbytes: usize) -> Result<(), String>;
    /// Starts to read `nbytes` bytes from offset `from` of the other PE's memory to offset `to` of
    /// this PE's.
    fn get(&mut self, from: usize, to: usize, nbytes: usize) -> Result<(), String>;
    /// Waits until all started operations are complete, also at the other PE if the network can
    /// tell.
    fn complete(&mut self) -> Result<(), String>;
    /// Polls the network. Yields the CPU if nothing was done, unless the PEs spin.
    fn progress(&mut self) -> Result<(), String>;
    /// Describes the transports and devices that it uses, for a sentence.
    fn path(&self) -> String;
}

/// The symmetric memory of the transfers: a word that ends a measurement, the source of that word,
/// the target, and the source.
#[derive(Clone, Copy)]
pub struct TransferMemory {
    words: &'static [AtomicU64],
}

/// Offset in bytes of the word that ends a measurement when the leader writes it.
pub const END: usize = 0;
/// Offset in bytes of the word that the leader writes to `END` of the other PE.
pub const END_SOURCE: usize = 64;
/// Offset in bytes of the target.
pub const TARGET: usize = 4096;

impl TransferMemory {
    /// Allocates memory for transfers of up to `nbytes` bytes on the symmetric heap, where the
    /// targets of the library's operations are, too. All PEs call it. Returns `None` if there is no
    /// room.
    pub fn new(library: &Joined<'_>, nbytes: usize) -> Option<Self> {
        let n_words = (source(nbytes) + nbytes).div_ceil(8);
        let words = library.reserve(n_words)?;
        Some(Self { words })
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

/// Returns the offset in bytes of the source, if transfers have up to `most` bytes. Source and
/// target begin on pages of their own.
pub fn source(most: usize) -> usize {
    TARGET + most.next_multiple_of(4096)
}

/// The device that a PE prefers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// A NIC with its port, such as `mlx5_0:1`.
    pub port: Option<String>,
    /// The names of the NIC and of its interface.
    names: Vec<String>,
    pub is_one_host: bool,
}

impl Preference {
    pub fn from_environment(is_one_host: bool) -> Self {
        Self::parse(&env::var("SHMEM_NIC").unwrap_or_default(), is_one_host)
    }

    fn parse(text: &str, is_one_host: bool) -> Self {
        let (nic, interface) = text.split_once(',').unwrap_or((text, ""));
        let (name, port) = match nic.split_once(':') {
            Some((name, _)) => (name, Some(nic.to_owned())),
            None => (nic, None),
        };

        let mut names = Vec::new();
        for name in [name, interface] {
            if !matches!(name, "" | "any") {
                names.push(name.to_owned());
            }
        }
        Self {
            port,
            names,
            is_one_host,
        }
    }

    /// Returns the rank of a device among those of one provider; the device with the lowest rank is
    /// used. On a single host the loopback is first, otherwise the NIC of `SHMEM_NIC`.
    pub fn rank(&self, device: &str) -> u8 {
        if self.is_one_host && device == "lo" {
            0
        } else if self.names.iter().any(|name| name == device) {
            1
        } else {
            2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first<'a>(nic: &str, is_one_host: bool, devices: &[&'a str]) -> &'a str {
        let preference = Preference::parse(nic, is_one_host);
        devices
            .iter()
            .min_by_key(|device| preference.rank(device))
            .expect("a device")
    }

    #[test]
    fn the_nic_and_its_interface_are_preferred() {
        assert_eq!(
            first("mlx5_1:1,ib1", false, &["mlx5_0", "mlx5_1"]),
            "mlx5_1"
        );
        assert_eq!(first("cxi2,hsn2", false, &["hsn0", "hsn2"]), "hsn2");
        assert_eq!(first("any", false, &["eth0", "lo"]), "eth0");
        assert_eq!(first("", true, &["eth0", "lo"]), "lo");
        assert_eq!(
            Preference::parse("mlx5_1:1,ib1", false).port.as_deref(),
            Some("mlx5_1:1")
        );
        assert_eq!(Preference::parse("any", true).port, None);
    }
}
