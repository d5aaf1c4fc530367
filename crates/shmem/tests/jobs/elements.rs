//! Types of elements: arrays of any length.

shmem::test!(arrays_of_any_length_are_elements, pes = 2, |shmem| {
    let lines = shmem.array::<[u8; 1000]>(3);
    lines[1].on(shmem.next()).write([7; 1000]);

    shmem.barrier_all();
    assert_eq!(lines.to_vec(), [[0; 1000], [7; 1000], [0; 1000]]);
    assert_eq!(shmem.world().all_gather([1u16; 33]), [[1; 33]; 2]);
});
