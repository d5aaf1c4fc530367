//! A PE waits for integers.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<f64>(1);
    //~| put the data first and then a `Signal`
    shmem.wait(array[0].ge(1.0)); //~ E0277: a PE cannot wait for elements of type `f64`
}
