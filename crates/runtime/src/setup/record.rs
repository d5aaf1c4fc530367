//! What each PE tells all others when it joins the job: what must be equal, and what only it knows.

use super::cpus::Cpus;
use crate::base::digest::digest;
use crate::net::cma::Probe;
use core::ffi::c_int;

/// Changes whenever PEs that differ in it could not work together.
const FORMAT: u64 = 3;

/// One PE's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) symmetric_size: u64,
    /// Which network stack: the same on PEs that reach each other over loopback.
    pub(super) stack: u64,
    /// Random; that of PE 0 is the job's secret.
    pub(super) secret: [u8; 32],
    pub(super) cpus: Cpus,
    /// The thread level that it asked for.
    pub(super) thread_level: c_int,
    /// A digest of the program's layout.
    pub(super) statics: u64,
    /// Where its static data begin in its node's memory, if they are there.
    pub(super) statics_at: Option<u64>,
    /// Where they begin in its process.
    pub(super) statics_start: usize,
    /// For others to try whether the kernel copies between processes; it holds the secret.
    pub(super) probe: Probe,
}

/// In the place of an offset that there is not.
const NOWHERE: u64 = u64::MAX;

impl Record {
    pub(super) fn encode(&self) -> Vec<u8> {
        let header = [
            FORMAT,
            self.symmetric_size,
            self.stack,
            self.thread_level as u64,
            self.statics,
            self.statics_at.unwrap_or(NOWHERE),
            self.statics_start as u64,
            self.probe.pid as u64,
            self.probe.address as u64,
            self.cpus.at_once as u64,
        ];
        let words = header.iter().chain(&self.cpus.mask);
        words.flat_map(|word| word.to_le_bytes()).chain(self.secret).collect()
    }

    /// `None` when another version wrote it.
    pub(super) fn decode(bytes: &[u8]) -> Option<Record> {
        let (bytes, secret) = bytes.split_last_chunk::<32>()?;
        let (words, rest) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        if !rest.is_empty() || words.next()? != FORMAT {
            return None;
        }
        let symmetric_size = words.next()?;
        let stack = words.next()?;
        let thread_level = words.next()? as c_int;
        let statics = words.next()?;
        let statics_at = Some(words.next()?).filter(|&at| at != NOWHERE);
        let statics_start = words.next()? as usize;
        let probe = Probe { pid: words.next()? as i32, address: words.next()? as usize };
        let at_once = words.next()? as usize;
        let cpus = Cpus { at_once, mask: words.collect() };
        Some(Record {
            symmetric_size,
            stack,
            secret: *secret,
            cpus,
            thread_level,
            statics,
            statics_at,
            statics_start,
            probe,
        })
    }
}

/// This process's network stack, told apart from those of other machines and network namespaces.
pub(super) fn stack() -> u64 {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    let bytes = boot.iter().chain(namespace.as_os_str().as_encoded_bytes());
    digest(&bytes.map(|&byte| u64::from(byte)).collect::<Vec<u64>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_way() {
        let cpus = Cpus { at_once: 3, mask: vec![0b1011, 1] };
        let record = Record {
            symmetric_size: 7 << 40,
            stack: 5,
            secret: [9; 32],
            cpus,
            thread_level: 2,
            statics: 3,
            statics_at: None,
            statics_start: 1 << 40,
            probe: Probe { pid: 77, address: 1 << 44 },
        };
        let there = Record { statics_at: Some(1 << 46), ..record.clone() };
        assert_eq!(Record::decode(&there.encode()), Some(there));
        assert_eq!(Record::decode(&record.encode()), Some(record.clone()));
        let mut other = record.encode();
        other[0] = 99;
        assert_eq!(Record::decode(&other), None);
        assert_eq!(Record::decode(&record.encode()[..99]), None);
    }
}
