//! Types that a program names and stores.

use shmem::{Context, Shmem};

/// What a program makes once and keeps as long as the handle.
struct Streams<'s> {
    of_world: Context<'s>,
    of_shared: Context<'s>,
    of_node: Context<'s>,
}

impl<'s> Streams<'s> {
    fn new(shmem: &'s Shmem) -> Streams<'s> {
        Streams {
            of_world: shmem.world().context(),
            of_shared: shmem.shared().context(),
            of_node: shmem.node().context(),
        }
    }
}

shmem::test!(contexts_of_predefined_teams_are_kept, pes = 2, |shmem| {
    let inbox = shmem.array::<u64>(3);
    let streams = Streams::new(&shmem);
    let contexts = [&streams.of_world, &streams.of_shared, &streams.of_node];
    for (element, context) in inbox.iter().zip(contexts) {
        element.on(context.next()).write(7);
        context.quiet();
    }
    shmem.sync_all();
    assert_eq!(inbox.to_vec(), [7; 3]);
});
