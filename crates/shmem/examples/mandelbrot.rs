//! A picture of the Mandelbrot set: each of n PEs computes every n-th row, PE 0 gets all rows and
//! prints them.

const WIDTH: usize = 64;
const HEIGHT: usize = 24;
const MOST: u8 = 100;

/// Returns the number of steps after which the point of a pixel leaves a circle of radius 2, at
/// most `MOST`.
fn steps(column: usize, row: usize) -> u8 {
    let (x0, y0) = (column as f32 / 26.0 - 2.0, row as f32 / 10.0 - 1.15);
    let (mut x, mut y) = (0.0f32, 0.0f32);
    for step in 0..MOST {
        (x, y) = (x * x - y * y + x0, 2.0 * x * y + y0);
        if x * x + y * y > 4.0 {
            return step;
        }
    }
    MOST
}

fn main() {
    let shmem = shmem::init();
    let (me, n_pes) = (shmem.my_pe(), shmem.n_pes());
    let pixels = |row| (0..WIDTH).map(move |column| steps(column, row));
    let rows = shmem.array(HEIGHT.div_ceil(n_pes) * WIDTH);
    for (room, row) in rows.chunks(WIDTH).zip((me..HEIGHT).step_by(n_pes)) {
        let computed: Vec<u8> = pixels(row).collect();
        room.copy_from_slice(&computed);
    }
    shmem.barrier_all();
    if me == 0 {
        for row in 0..HEIGHT {
            let (first, mut line) = (row / n_pes * WIDTH, [0; WIDTH]);
            let owner = shmem.pe(row % n_pes);
            rows[first..first + WIDTH].on(owner).get(&mut line);
            assert!(line.into_iter().eq(pixels(row)));
            println!(
                "{}",
                line.map(|steps| char::from(b" .:-=+*#%@"[usize::from(steps) / 11]))
                    .iter()
                    .collect::<String>()
            );
        }
    } else {
        println!("PE {me} is done");
    }
}
