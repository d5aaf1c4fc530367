//! Types of elements: arrays of any length, and structures that derive the trait.

/// The library as another crate exports it.
mod other {
    pub use shmem as memory;
}

#[derive(Clone, Copy, Debug, PartialEq, shmem::Element)]
#[repr(C)]
#[shmem(crate = "crate::elements::other::memory")]
struct Name {
    text: [u8; 42],
    len: u8,
}

shmem::test!(arrays_of_any_length_are_elements, pes = 2, |shmem| {
    let lines = shmem.array::<[u8; 1000]>(3);
    let names = shmem.boxed(Name {
        text: [0; 42],
        len: 0,
    });

    let name = Name {
        text: *b"a name of 42 bytes that is not any shorter",
        len: 42,
    };
    lines[1].on(shmem.next()).write([7; 1000]);
    names.on(shmem.next()).write(name);

    shmem.barrier_all();
    assert_eq!(lines.to_vec(), [[0; 1000], [7; 1000], [0; 1000]]);
    assert_eq!(names.load(), name);
    assert_eq!(shmem.world().all_gather([1u16; 33]), [[1; 33]; 2]);
});
