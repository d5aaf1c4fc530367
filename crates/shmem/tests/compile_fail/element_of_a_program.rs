//! A program cannot say what an element is, but by `Pod`.

#[derive(Clone, Copy)]
struct Flag(bool);

unsafe impl shmem::Element for Flag {} //~ E0277

fn main() {
    let _ = Flag(true);
}
