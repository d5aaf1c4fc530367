//! Every PE writes its number to the next one: a put, a barrier and a load.

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();

    let inbox = shmem.zeroed();
    inbox.on(shmem.next()).write(me);
    shmem.barrier_all();
    println!("PE {me} heard from PE {}", inbox.load());
    assert_eq!(inbox.load(), (me + n_pes - 1) % n_pes);
}
