//! Unit tests of the list of objects with unfinished operations.

use super::flush_list::FlushList;

#[test]
fn what_is_kept_comes_again() {
    let unfinished = FlushList::default();
    assert_eq!(
        unfinished.finish(|_: &mut u32| unreachable!("there is nothing")),
        0
    );

    for entry in 0..4 {
        unfinished.add(entry);
    }
    let n_left = unfinished.finish(|entry| {
        unfinished.add(10 + *entry);
        entry.is_multiple_of(2)
    });
    assert_eq!(n_left, 6);
    let entries = unfinished.map(|&entry| entry);
    assert_eq!(entries, Some(vec![0, 2, 10, 11, 12, 13]));

    let mut n_seen = 0;
    let n_left = unfinished.finish(|_| {
        n_seen += 1;
        false
    });
    assert_eq!(n_seen, 6);
    assert_eq!(n_left, 0);
    assert!(!unfinished.any(|_| true));
}

#[test]
fn what_another_thread_is_finishing_is_not_overlooked() {
    let unfinished = FlushList::default();
    unfinished.add(0);

    let n_left = unfinished.finish(|_| {
        // What another thread finds meanwhile.
        let n_left = unfinished.finish(|_| unreachable!("the only one is being finished"));
        assert_eq!(n_left, 1);
        assert_eq!(unfinished.map(|&entry| entry), None);
        assert!(unfinished.any(|_| false), "nothing is known of it");
        true
    });

    assert_eq!(n_left, 1);
    assert_eq!(unfinished.map(|&entry| entry), Some(vec![0]));
    assert!(!unfinished.any(|_| false));
}
