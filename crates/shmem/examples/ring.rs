//! Every PE writes its number to the next one.

fn main() {
    let shmem = shmem::init();
    let (me, n_pes) = (shmem.my_pe(), shmem.n_pes());
    let mut inbox = shmem.array::<u64>(1);
    shmem.put(&inbox, &[u64::from(me)], (me + 1) % n_pes);
    shmem.barrier_all();
    println!("PE {me} of {n_pes} heard from PE {}", inbox.load(0));
    let first = inbox.epoch(|own| own[0]);
    assert_eq!(first, u64::from((me + n_pes - 1) % n_pes));
}
