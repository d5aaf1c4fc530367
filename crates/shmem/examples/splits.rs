//! Teams of the rows and columns of a grid of PEs, in 2 and in 3 dimensions.

use shmem::Team;

/// Returns two factors of `n` that are about the same, the greater one first.
fn two_factors(n: usize) -> [usize; 2] {
    let x = (n.isqrt()..=n)
        .find(|x| n.is_multiple_of(*x))
        .expect("n divides n");
    [x.max(n / x), x.min(n / x)]
}

/// Returns three factors of `n`.
fn three_factors(n: usize) -> [usize; 3] {
    let root = (n as f64).cbrt().ceil() as usize;
    let x = (1..=root)
        .rev()
        .find(|x| n.is_multiple_of(*x))
        .expect("1 divides n");
    let [y, z] = two_factors(n / x);
    [x, y, z]
}

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();
    let world = shmem.world();

    // The number of this PE in its row is its x coordinate, that in its column its y coordinate.
    let [width, height] = two_factors(n_pes);
    let (row, column) = world.split_2d(width).expect("few teams are made");
    assert_eq!((row.n_pes(), column.n_pes()), (width, height));
    assert_eq!(row.my_pe() + width * column.my_pe(), me);
    assert_eq!(row.translate(0, world), Some(me - me % width));

    // The column is split again for the third dimension, and may be dropped then.
    let [x, y, z] = three_factors(n_pes);
    let (along_x, plane) = world.split_2d(x).expect("few teams are made");
    let (along_y, along_z) = plane.split_2d(y).expect("few teams are made");
    drop(plane);
    let teams = [along_x, along_y, along_z];
    assert_eq!(teams.each_ref().map(Team::n_pes), [x, y, z]);

    let [my_x, my_y, my_z] = teams.each_ref().map(Team::my_pe);
    assert_eq!(my_x + x * (my_y + y * my_z), me);
    println!("PE {me} is at ({my_x}, {my_y}, {my_z}) of {x} x {y} x {z}");
}
