//! Unit tests of `contexts`.

use super::*;
use rushmem_pe::call::call;

const CALL: Call = call!("test");

/// Returns a context of `SHMEM_TEAM_SHARED` with these members.
fn entry(members: Members) -> ContextEntry {
    ContextEntry {
        team: TeamHandle::SHARED,
        root: TeamHandle::SHARED,
        members,
        options: 0,
        user: None,
    }
}

#[test]
fn a_slot_is_reused_and_its_old_handles_mean_nothing() {
    // Other tests of this process may use the first slots.
    let mut registry = Registry {
        used: 60_000,
        ..Registry::default()
    };
    let pair = entry(Members::listed(vec![3, 2]));
    let first = registry
        .assign_slot(&pair, 9, false)
        .expect("there are slots");
    registry.alive.insert(first, pair.clone());
    assert_eq!([first.world_pe(CALL, 0), first.world_pe(CALL, 1)], [3, 2]);
    assert!(registry.remove(first) && !registry.remove(first));
    assert!(slot_of(first).is_none());

    let second = registry
        .assign_slot(&pair, 9, false)
        .expect("there are slots");
    assert_eq!(first.0 as u32, second.0 as u32);
    assert!(slot_of(first).is_none() && slot_of(second).is_some());
    registry.alive.insert(second, pair.clone());
    registry.remove(second);

    let list = entry(Members::listed(vec![7, 1, 2]));
    let third = registry
        .assign_slot(&list, 9, false)
        .expect("there are slots");
    assert_eq!([0, 1, 2].map(|pe| third.world_pe(CALL, pe)), [7, 1, 2]);

    // With checks, the slot of a context translates no PE.
    let checked = registry
        .assign_slot(&pair, 9, true)
        .expect("there are slots");
    assert_eq!(slot_of(checked).map(|slot| slot.n.load(Relaxed)), Some(0));
}

#[test]
fn handles_of_the_world_and_of_other_teams_differ() {
    let world = entry(Members::world(9));
    let pair = entry(Members::listed(vec![3, 2]));
    let mut registry = Registry {
        used: MAX_CONTEXTS as u32 - 3,
        ..Registry::default()
    };
    let mut made = |members, check| registry.assign_slot(members, 9, check);
    assert!(made(&world, false).is_some_and(|h| h.is_of_world() && h != ContextHandle::DEFAULT));
    assert!(
        made(&world, true).is_some_and(|h| !h.is_of_world()),
        "it goes through the registry"
    );
    assert!(made(&pair, false).is_some_and(|h| !h.is_of_world()));
    assert!(made(&world, false).is_none());
    assert!(ContextHandle::DEFAULT.is_of_world() && !ContextHandle::INVALID.is_of_world());
}

/// Returns a context of the world that exists, for tests elsewhere.
pub(crate) fn made(options: c_long) -> ContextHandle {
    let team = TeamHandle::WORLD;
    add(team, team, Members::world(2), options, 2, false).expect("there are slots")
}

#[test]
fn an_invalid_handle_has_no_slot() {
    for invalid in [0, 7, usize::MAX, 0x7fff_1234_5678, 0x5555_0000_0000] {
        let slot = slot_of(ContextHandle(invalid));
        assert!(
            slot.is_none_or(|slot| slot.n.load(Relaxed) == 0),
            "{invalid:#x}"
        );
    }
}
