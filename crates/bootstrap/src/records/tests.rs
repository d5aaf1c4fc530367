//! Unit tests of `records`.

use super::*;
use proptest::prelude::*;

fn sent(records: &Records) -> Vec<u8> {
    postcard::to_stdvec(records).expect("plain data")
}

proptest! {
    #[test]
    fn records_survive_and_are_found(
        records in prop::collection::vec(prop::collection::vec(0..3_u8, 0..6), 1..40),
    ) {
        let all: Records = records.iter().cloned().collect();
        prop_assert_eq!(all.n_pes() as usize, records.len());
        prop_assert_eq!(all.iter().cloned().collect::<Vec<_>>(), records.clone());
        prop_assert!((0..).zip(&records).all(|(pe, record)| all[pe] == *record));
        let such = |record: &Vec<u8>| record.len() > 3;
        let first = records.iter().position(such).map(|pe| pe as u32);
        prop_assert_eq!(all.position(such), first);
        prop_assert_eq!(postcard::from_bytes(&sent(&all)), Ok(all));
    }

    #[test]
    fn invalid_input_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(records) = postcard::from_bytes::<Records>(&bytes) {
            prop_assert_eq!(postcard::from_bytes(&sent(&records)), Ok(records));
        }
    }
}

#[test]
fn what_is_equal_is_sent_once() {
    let common = vec![7; 1000];
    let equal: Records = (0..10_000).map(|_| common.clone()).collect();
    assert!(sent(&equal).len() < 1010);
    let differs_within = |pe: u32| [&common[..], &pe.to_le_bytes(), &common].concat();
    let nearly: Records = (0..10_000).map(differs_within).collect();
    assert!(sent(&nearly).len() < 2010 + 10_000 * 11);
    assert_eq!(nearly[9_999], differs_within(9_999));
}

#[test]
fn what_cannot_be_is_refused() {
    let run =
        |n_pes, start, end, middle: usize| SentRun { n_pes, start, end, middle: vec![1; middle] };
    assert!(of_sent(&[run(1, 0, 0, 4), run(1, 2, 2, 0)]).is_some());
    assert_eq!(of_sent(&[run(1, 1, 0, 4)]), None, "there is no record before");
    assert_eq!(of_sent(&[run(1, 0, 0, 4), run(1, 3, 2, 0)]), None, "they overlap");
    assert_eq!(of_sent(&[run(0, 0, 0, 4)]), None, "of nobody");
    assert_eq!(of_sent(&[run(u32::MAX, 0, 0, 4), run(1, 0, 0, 4)]), None, "too many PEs");
    assert_eq!(of_sent(&[run(1, 0, 0, MAX_RECORD + 1)]), None, "too long");
    let n_runs = MAX_RECORDS / MAX_RECORD + 2;
    let many = |i| {
        if i == 0 {
            run(1, 0, 0, MAX_RECORD - 1)
        } else {
            run(1, MAX_RECORD as u32 - 2, 0, 1 + i % 2)
        }
    };
    assert_eq!(of_sent(&(0..n_runs).map(many).collect::<Vec<_>>()), None, "too many bytes");
}
