//! Parts of an array, whatever iterates them, do not outlive it.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(8);
    let part = array.get(2..4);
    let rest = array.chunks_exact(3).remainder();
    let last = array.windows(4).last();
    array.free(); //~ E0505
    println!("{part:?} {rest:?} {last:?}");
}
