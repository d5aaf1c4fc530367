//! Unit tests of `contexts`.

use super::*;
use rushmem_pe::call::call;
use std::sync::mpsc::sync_channel;
use std::thread;

const CALL: Call = call!("test");
const N_PES: u32 = 9;

impl Contexts {
    /// Adds a context of a team with these members, which was split from the world.
    fn of_members(&self, members: Members) -> Option<ContextHandle> {
        let team = TeamHandle::new(5, 1);
        self.add(team, TeamHandle::WORLD, members, 0, N_PES, false)
    }

    /// Adds a context of the world, for tests elsewhere.
    pub(crate) fn of_world(&self, options: c_long) -> ContextHandle {
        let team = TeamHandle::WORLD;
        self.add(team, team, Members::world(2), options, 2, false)
            .expect("there are slots")
    }

    /// Returns the PEs of the world that the first `N` PEs of a context's team are.
    fn first_pes<const N: usize>(&self, ctx: ContextHandle) -> [c_int; N] {
        std::array::from_fn(|pe| self.world_pe(CALL, ctx, pe as c_int))
    }
}

#[test]
fn a_slot_is_reused_and_its_old_handles_mean_nothing() {
    static CONTEXTS: Contexts = Contexts::new();
    let pair = || Members::listed(vec![3, 2]);
    let first = CONTEXTS.of_members(pair()).expect("there are slots");
    assert_eq!(CONTEXTS.first_pes(first), [3, 2]);
    CONTEXTS.remove(first);
    assert!(CONTEXTS.slot_of(first).is_none());

    let second = CONTEXTS.of_members(pair()).expect("there are slots");
    assert_eq!(first.index(), second.index());
    // The slot is that of another context now.
    CONTEXTS.remove(first);
    assert!(CONTEXTS.slot_of(first).is_none() && CONTEXTS.slot_of(second).is_some());
    assert_eq!(CONTEXTS.team_of(first), None);
    CONTEXTS.remove(second);

    let list = Members::listed(vec![7, 1, 2]);
    let third = CONTEXTS.of_members(list).expect("there are slots");
    assert_eq!(CONTEXTS.first_pes(third), [7, 1, 2]);
}

#[test]
fn with_checks_the_slot_of_a_context_translates_no_pe() {
    static CONTEXTS: Contexts = Contexts::new();
    let members = Members::listed(vec![3, 2]);
    let team = TeamHandle::SHARED;
    let checked = CONTEXTS
        .add(team, team, members, 0, N_PES, true)
        .expect("there are slots");
    let slot = CONTEXTS.slot_of(checked).expect("it has one");
    assert_eq!(slot.n.load(Relaxed), 0);
    assert!(CONTEXTS.is_of_shared(checked));
    assert_eq!(CONTEXTS.first_pes(checked), [3, 2], "in the registry");
}

#[test]
fn handles_of_the_world_and_of_other_teams_differ() {
    static CONTEXTS: Contexts = Contexts::new();
    CONTEXTS.registry().used = MAX_CONTEXTS as u32 - 3;
    let add = |members: Members, check| {
        let team = TeamHandle::SHARED;
        CONTEXTS.add(team, team, members, 0, N_PES, check)
    };
    let world = add(Members::world(N_PES), false).expect("there are slots");
    assert!(world.is_of_world() && world != ContextHandle::DEFAULT);
    let checked = add(Members::world(N_PES), true).expect("there are slots");
    assert!(!checked.is_of_world(), "it goes through the registry");
    let pair = add(Members::listed(vec![3, 2]), false).expect("there are slots");
    assert!(!pair.is_of_world());

    assert!(add(Members::world(N_PES), false).is_none());
    assert!(ContextHandle::DEFAULT.is_of_world() && !ContextHandle::INVALID.is_of_world());
}

#[test]
fn an_invalid_handle_has_no_slot() {
    static CONTEXTS: Contexts = Contexts::new();
    for invalid in [0, 7, usize::MAX, 0x7fff_1234_5678, 0x5555_0000_0000] {
        let slot = CONTEXTS.slot_of(ContextHandle(invalid));
        assert!(
            slot.is_none_or(|slot| slot.n.load(Relaxed) == 0),
            "{invalid:#x}"
        );
    }
}

/// Contexts of two PEs have the same handle and different members.
#[test]
fn two_pes_have_contexts_of_their_own() {
    static PES: [Contexts; 2] = [const { Contexts::new() }; 2];
    let lists = [vec![3, 2], vec![7, 1]];
    let [first, second] = &PES;
    let [ctx, on_second] = [0, 1].map(|pe: usize| {
        let members = Members::listed(lists[pe].clone());
        PES[pe].of_members(members).expect("there are slots")
    });
    assert_eq!(ctx, on_second);
    for (pe, list) in PES.iter().zip(&lists) {
        let slot = pe.slot_of(ctx).expect("it has one");
        assert_eq!(slot.world_pe(1), Some(list[1] as c_int));
    }
    assert_eq!(first.first_pes(ctx), [3, 2]);
    assert_eq!(second.first_pes(ctx), [7, 1]);

    first.remove(ctx);
    assert!(first.team_of(ctx).is_none() && first.of_team(None).is_empty());
    assert!(second.is_known(CALL, ctx));
    assert_eq!(second.first_pes(ctx), [7, 1]);
}

/// A thread creates contexts, which another one uses and destroys, while further threads do the
/// same: each context is that of its team as long as it lives, and unknown afterwards.
#[test]
fn threads_share_contexts_and_destroy_those_of_others() {
    static CONTEXTS: Contexts = Contexts::new();
    const EACH: usize = 500;
    // So few at once that slots are reused.
    const AT_ONCE: usize = 4;

    thread::scope(|scope| {
        for first_pe in 0..2 {
            let (sender, receiver) = sync_channel(AT_ONCE);
            scope.spawn(move || {
                for nth in 0..EACH {
                    // Some members are listed, the others are a triplet.
                    let middle = if nth % 2 == 0 { 8 } else { first_pe + 1 };
                    let pes = [first_pe, middle, first_pe + 2];
                    let members = Members::listed(pes.to_vec());
                    let ctx = CONTEXTS.of_members(members).expect("there are slots");
                    sender.send((ctx, pes)).expect("the other thread receives");
                }
            });
            scope.spawn(move || {
                for (ctx, pes) in receiver {
                    assert!(CONTEXTS.is_known(CALL, ctx));
                    assert_eq!(CONTEXTS.first_pes(ctx), pes.map(|pe| pe as c_int));
                    CONTEXTS.remove(ctx);
                    assert!(CONTEXTS.slot_of(ctx).is_none() && CONTEXTS.team_of(ctx).is_none());
                }
            });
        }
    });

    assert!(CONTEXTS.of_team(None).is_empty());
    let registry = CONTEXTS.registry();
    assert_eq!(registry.spare.len(), registry.used as usize);
    // Of each pair of threads, one has a context in hand at either end of the full channel.
    assert!(
        registry.used as usize <= 2 * (AT_ONCE + 2),
        "slots are reused"
    );
}
