//! What other PEs may write has no references in it.

fn main() {
    let shmem = shmem::init();
    let mut names = vec!["a", "b"];
    let done = shmem.with_registered(&mut names, |_| ()); //~ E0277 //~ E0277: elements of type `&str` are not loaded, stored or lent as plain data
    drop(done);
}
