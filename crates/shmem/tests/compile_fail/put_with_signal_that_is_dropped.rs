//! A transfer that completes later borrows its signal, too.

fn main() {
    let shmem = shmem::init();
    let inbox = shmem.array::<u64>(1);
    let put = {
        let arrived = shmem.zeroed::<shmem::Signal>();
        inbox.on(shmem.next()).put_owned_with(vec![1], arrived.set(1)) //~ E0597
    };
    put.wait();
}
