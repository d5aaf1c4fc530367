//! The directory: the addresses and keys of all PEs of a job, in one table that the PEs of a node
//! share.
//!
//! The runtime fills the table once, from what the PEs have exchanged. A provider looks a PE up at
//! the first use of that PE, so that an unused peer takes no memory in a process.

use crate::{Pe, Segment};

/// The address and the keys that a PE has published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeRecord<'a> {
    /// The PE's [address](crate::Transport::address).
    pub address: &'a [u8],
    /// The keys of its segments, by the numbers of the segments; empty for one that is not
    /// registered.
    pub keys: [&'a [u8]; Segment::COUNT],
}

/// Bytes of a number in the table.
const NUMBER: usize = 4;
/// The number of parts of a record: the address and the keys.
const PARTS: usize = 1 + Segment::COUNT;

/// The records of all PEs.
///
/// The table consists of the number of PEs, the end of each PE's record, and the records. A record
/// consists of the lengths of its parts and the parts. An end is an offset from the first record.
pub struct Directory(Box<dyn AsRef<[u8]> + Send + Sync>);

impl Directory {
    /// Encodes the table of these PEs, in the order of their numbers.
    ///
    /// # Panics
    /// When they would exceed 4 GiB.
    pub fn encode<'a>(all: impl ExactSizeIterator<Item = PeRecord<'a>>) -> Vec<u8> {
        // Room for the ends of the records, which are known once the records are encoded.
        let start_of_records = (1 + all.len()) * NUMBER;
        let mut bytes = encode_number(all.len()).to_vec();
        bytes.resize(start_of_records, 0);

        for (pe, record) in all.enumerate() {
            bytes.extend(encode_number(record.address.len()));
            for key in record.keys {
                bytes.extend(encode_number(key.len()));
            }

            bytes.extend(record.address);
            for key in record.keys {
                bytes.extend(key);
            }

            let end = encode_number(bytes.len() - start_of_records);
            bytes[(1 + pe) * NUMBER..][..NUMBER].copy_from_slice(&end);
        }
        bytes
    }

    /// Returns the maximum number of bytes of the table of `n_pes` PEs, each of which has published
    /// at most `each` bytes.
    pub fn most_bytes(n_pes: u32, each: usize) -> usize {
        NUMBER + n_pes as usize * (NUMBER + PARTS * NUMBER + each)
    }

    /// Returns the directory over bytes that [`encode`](Directory::encode) has made. The bytes must
    /// not change any more.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Directory {
        Directory(Box::new(bytes))
    }

    /// Returns the record of a PE; `None` if the PE is not in the table, or the table is damaged.
    pub fn of(&self, pe: Pe) -> Option<PeRecord<'_>> {
        let bytes = (*self.0).as_ref();
        let n_pes = number(bytes, 0)?;
        if pe.index() >= n_pes {
            return None;
        }

        // The number of PEs is at index 0, so the end of a PE's record is at the index of the next
        // PE. A record begins where the one before it ends.
        let start = if pe.index() == 0 {
            0
        } else {
            number(bytes, pe.index())?
        };
        let end = number(bytes, pe.index() + 1)?;
        let record = bytes.get((1 + n_pes) * NUMBER..)?.get(start..end)?;
        decode_record(record)
    }
}

/// Returns the parts of an encoded record; `None` if it is damaged.
fn decode_record(record: &[u8]) -> Option<PeRecord<'_>> {
    let parts = record.get(PARTS * NUMBER..)?;
    let (address, mut rest) = parts.split_at_checked(number(record, 0)?)?;

    let mut keys = [&[][..]; Segment::COUNT];
    for (segment, key) in keys.iter_mut().enumerate() {
        let nbytes = number(record, 1 + segment)?;
        (*key, rest) = rest.split_at_checked(nbytes)?;
    }
    Some(PeRecord { address, keys })
}

fn encode_number(n: usize) -> [u8; NUMBER] {
    u32::try_from(n)
        .expect("records are below 4 GiB")
        .to_le_bytes()
}

/// Returns the number at this index of the numbers at the start of the bytes; `None` beyond the
/// bytes.
fn number(bytes: &[u8], index: usize) -> Option<usize> {
    let number = bytes.get(index * NUMBER..)?.first_chunk()?;
    Some(u32::from_le_bytes(*number) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_announced_is_found() {
        let records = [
            PeRecord {
                address: b"here",
                keys: [b"heap", b"", b"static"],
            },
            PeRecord::default(),
            PeRecord {
                address: &[7; 70_000],
                keys: [b"", b"internal", b""],
            },
        ];

        let bytes = Directory::encode(records.into_iter());
        assert!(bytes.len() <= Directory::most_bytes(3, 70_008));

        let directory = Directory::new(bytes.clone());
        for (pe, record) in (0..).zip(records) {
            assert_eq!(directory.of(Pe(pe)), Some(record));
        }
        assert_eq!(directory.of(Pe(3)), None);

        assert_eq!(Directory::new(Vec::new()).of(Pe(0)), None);
        let cut = Directory::new(bytes[..bytes.len() - 1].to_vec());
        assert_eq!(cut.of(Pe(1)), Some(records[1]));
        assert_eq!(cut.of(Pe(2)), None);
    }

    #[test]
    fn a_table_is_no_larger_than_promised() {
        let records = [PeRecord {
            address: &[1; 50],
            keys: [&[2; 20]; Segment::COUNT],
        }; 100];
        let bytes = Directory::encode(records.into_iter());
        assert_eq!(bytes.len(), Directory::most_bytes(100, 110));
    }
}
