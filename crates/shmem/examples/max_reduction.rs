//! The maximum of values of all PEs: of single values, of arrays element by element, and among some
//! PEs only.

use shmem::Max;

/// Returns the value of a PE. The last PE does not have the greatest one.
fn value(pe: usize) -> usize {
    pe * 5 % 7
}

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();
    let world = shmem.world();

    let greatest = world.all_reduce(value(me), Max);
    assert_eq!(Some(greatest), (0..n_pes).map(value).max());

    let source = shmem.array_from(&[value(me), me, 7 - value(me)]);
    let dest = shmem.array(3);
    world.all_reduce_into(&source, &dest, Max);
    assert_eq!(dest[0].load(), greatest);
    assert_eq!(dest[1].load(), n_pes - 1);

    // The PEs of even numbers: every second one from PE 0 on.
    let evens = world
        .split_strided(0, 2, n_pes.div_ceil(2))
        .expect("there are such PEs");
    if let Some(evens) = evens {
        let greatest = evens.all_reduce(value(me), Max);
        assert_eq!(Some(greatest), (0..n_pes).step_by(2).map(value).max());
    }

    println!("PE {me} knows the greatest values {:?}", dest.to_vec());
}
