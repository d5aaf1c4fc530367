//! The versions of all formats that cross between processes, and the codec of records: addresses,
//! keys, statuses, statistics and what PEs exchange at the start.
//!
//! Protocols of frames and messages, such as those of TCP and of the job, encode themselves; their
//! versions are here as well. This module does not interpret records.

mod versions;

pub use versions::*;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The reason why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The sender runs another version of Rushmem: this build's format, and the version of the
    /// bytes.
    #[error(
        "the {name} has version {1} there and {version} here; start all PEs with the same version of Rushmem",
        name = .0.name,
        version = .0.version
    )]
    Version(Format, u8),
    /// There are no bytes, or they have this version, but are not a record.
    /// Remedy: give all hosts the same installation.
    #[error("the {} is damaged", .0.name)]
    Damaged(Format),
}

/// Encodes a record: the version of its format, then the record as serde and postcard encode it.
///
/// # Panics
/// When serde cannot encode the type of the record, because a sequence has an unknown length.
pub fn encode<T: Serialize>(format: Format, record: &T) -> Vec<u8> {
    let bytes = vec![format.version];
    postcard::to_extend(record, bytes).expect("records are plain data, and memory grows")
}

/// Decodes the bytes of one record, as [`encode`] returns them.
///
/// # Errors
/// When the bytes have another version, or are not exactly one record.
pub fn decode<T: DeserializeOwned>(format: Format, bytes: &[u8]) -> Result<T, Error> {
    let Some((version, body)) = bytes.split_first() else {
        return Err(Error::Damaged(format));
    };
    if *version != format.version {
        return Err(Error::Version(format, *version));
    }

    match postcard::take_from_bytes(body) {
        Ok((record, [])) => Ok(record),
        // The bytes are no record, or others follow it.
        _ => Err(Error::Damaged(format)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMAT: Format = Format {
        name: "thing",
        version: 3,
    };
    type Record = (u64, Option<String>, Vec<(u8, [u8; 4])>);

    proptest! {
        #[test]
        fn records_come_back(record: Record) {
            let bytes = encode(FORMAT, &record);
            prop_assert_eq!(decode::<Record>(FORMAT, &bytes), Ok(record));
            prop_assert_eq!(decode::<Record>(FORMAT, &bytes[..bytes.len() - 1]), Err(Error::Damaged(FORMAT)));
            let longer = [&bytes[..], &[0]].concat();
            prop_assert_eq!(decode::<Record>(FORMAT, &longer), Err(Error::Damaged(FORMAT)));
        }

        #[test]
        fn invalid_input_is_refused_or_is_a_record(bytes: Vec<u8>) {
            if let Ok(record) = decode::<Record>(FORMAT, &bytes) {
                prop_assert_eq!(decode(FORMAT, &encode(FORMAT, &record)), Ok(record));
            }
        }
    }

    #[test]
    fn another_version_is_named() {
        let bytes = encode(
            Format {
                version: 2,
                ..FORMAT
            },
            &7u32,
        );
        let error = decode::<u32>(FORMAT, &bytes).expect_err("another version");
        assert_eq!(error, Error::Version(FORMAT, 2));
        let text = error.to_string();
        assert!(
            text.starts_with("the thing has version 2 there and 3 here; start all PEs"),
            "{text}"
        );
    }
}
