//! Unit tests of the codec.

use super::*;
use proptest::prelude::*;

const FORMAT: Format = Format { name: "thing", version: 3 };
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
    let bytes = encode(Format { version: 2, ..FORMAT }, &7u32);
    let error = decode::<u32>(FORMAT, &bytes).expect_err("another version");
    assert_eq!(error, Error::Version(FORMAT, 2));
    let text = error.to_string();
    assert!(text.starts_with("the thing has version 2 there and 3 here; start all PEs"), "{text}");
}
