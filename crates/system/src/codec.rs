//! The codec of what processes exchange: the records, addresses and keys of PEs, and their
//! statuses.
//!
//! The bytes do not say what they are. PEs of one build agree about that, and no job runs with two;
//! what processes of two builds may exchange begins with a version of its own.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The bytes are not a value of the expected type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its data are damaged")]
pub struct Damaged;

/// Encodes a value as serde and postcard do.
///
/// # Panics
/// When serde cannot encode the type, because a sequence has an unknown length.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_extend(value, Vec::new()).expect("values are plain data, and memory grows")
}

/// Decodes the bytes of one value, as [`encode`] returns them.
///
/// # Errors
/// When the bytes are not exactly one value.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Damaged> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        // The bytes are no value, or others follow it.
        _ => Err(Damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Record = (u64, Option<String>, Vec<(u8, [u8; 4])>);

    proptest! {
        #[test]
        fn records_come_back(record: Record) {
            let bytes = encode(&record);
            prop_assert_eq!(decode::<Record>(&bytes), Ok(record));
            prop_assert_eq!(decode::<Record>(&bytes[..bytes.len() - 1]), Err(Damaged));
            let longer = [&bytes[..], &[0]].concat();
            prop_assert_eq!(decode::<Record>(&longer), Err(Damaged));
        }

        #[test]
        fn invalid_input_is_refused_or_is_a_record(bytes: Vec<u8>) {
            if let Ok(record) = decode::<Record>(&bytes) {
                prop_assert_eq!(decode(&encode(&record)), Ok(record));
            }
        }
    }
}
