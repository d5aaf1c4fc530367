//! Unit tests of `contexts`.

use super::*;

const CALL: Call = Call("test");

#[test]
fn a_slot_is_reused_and_its_old_handles_mean_nothing() {
    // Other tests of this process may use the first slots.
    let mut registry = Registry { used: 60_000, ..Registry::default() };
    let pair = Members::listed(vec![3, 2]);
    let entry = |members| Entry {
        team: TeamHandle::SHARED,
        members,
        options: 0,
        creator: thread::current().id(),
    };
    let first = registry.with_slot(&pair, 9, false).expect("there are slots");
    registry.alive.insert(first, entry(pair.clone()));
    assert_eq!([first.world_pe(CALL, 0), first.world_pe(CALL, 1)], [3, 2]);
    assert!(registry.remove(first) && !registry.remove(first));
    assert!(slot_of(first).is_none());
    let second = registry.with_slot(&pair, 9, false).expect("there are slots");
    assert_eq!(first.0 as u32, second.0 as u32);
    assert!(slot_of(first).is_none() && slot_of(second).is_some());
    registry.alive.insert(second, entry(pair.clone()));
    registry.remove(second);
    let list = Members::listed(vec![7, 1, 2]);
    let third = registry.with_slot(&list, 9, false).expect("there are slots");
    assert_eq!([0, 1, 2].map(|pe| third.world_pe(CALL, pe)), [7, 1, 2]);
    // What checks leaves nothing to the short path.
    let checked = registry.with_slot(&pair, 9, true).expect("there are slots");
    assert_eq!(slot_of(checked).map(|slot| slot.n.load(Relaxed)), Some(0));
}

#[test]
fn slots_end_and_handles_of_the_world_do_not() {
    let pair = Members::listed(vec![3, 2]);
    let mut registry = Registry { used: MOST as u32 - 1, ..Registry::default() };
    assert!(registry.with_slot(&pair, 9, false).is_some());
    assert!(registry.with_slot(&pair, 9, false).is_none());
    registry.made = u32::MAX - 2;
    let handles: Vec<ContextHandle> = (0..3).map(|_| registry.without_slot()).collect();
    assert!(handles.iter().all(|h| h.is_of_world() && *h != ContextHandle::DEFAULT));
    assert_eq!(handles[1], ContextHandle::new(1, ContextHandle::WORLD));
    // The second time round, some are in use still.
    let (team, creator) = (TeamHandle::WORLD, thread::current().id());
    let entry = Entry { team, members: pair, options: 0, creator };
    registry.alive.insert(ContextHandle::new(3, ContextHandle::WORLD), entry);
    assert_eq!(registry.without_slot(), ContextHandle::new(4, ContextHandle::WORLD));
}

/// A context of the world that exists, for tests elsewhere.
pub(crate) fn made() -> ContextHandle {
    let members = Members::world(2);
    let (team, creator) = (TeamHandle::WORLD, thread::current().id());
    with_registry(|registry| {
        let handle = registry.without_slot();
        registry.alive.insert(handle, Entry { team, members, options: 0, creator });
        handle
    })
}

#[test]
fn garbage_has_no_slot() {
    for garbage in [0, 7, usize::MAX, 0x7fff_1234_5678, 0x5555_0000_0000] {
        let slot = slot_of(ContextHandle(garbage));
        assert!(slot.is_none_or(|slot| slot.n.load(Relaxed) == 0), "{garbage:#x}");
    }
}
