//! Start-up records as bytes: the version of their format, then what serde and postcard make of
//! them.

use crate::formats::Format;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The PEs run different versions of the library: that of the bytes comes second.
    #[error(
        "the {name} has version {1} there and {version} here; start all PEs with the same version of Rushmem",
        name = .0.name,
        version = .0.version
    )]
    Version(Format, u8),
    /// The bytes are of this version, but no record.
    /// Remedy: give all hosts the same installation.
    #[error("the {} is damaged", .0.name)]
    Damaged(Format),
}

/// Returns a record as bytes.
///
/// # Panics
/// When the type of the record is one that serde cannot write without knowing its length.
pub fn encode<T: Serialize>(format: Format, record: &T) -> Vec<u8> {
    let bytes = vec![format.version];
    postcard::to_extend(record, bytes).expect("records are plain data, and memory grows")
}

/// Returns a record from bytes, all of them.
///
/// # Errors
/// When they are none of this version.
pub fn decode<T: DeserializeOwned>(format: Format, bytes: &[u8]) -> Result<T, Error> {
    match bytes.split_first() {
        Some((version, body)) if *version == format.version => {
            match postcard::take_from_bytes(body) {
                Ok((record, [])) => Ok(record),
                _ => Err(Error::Damaged(format)),
            }
        }
        Some((version, _)) => Err(Error::Version(format, *version)),
        None => Err(Error::Damaged(format)),
    }
}

#[cfg(test)]
mod tests;
