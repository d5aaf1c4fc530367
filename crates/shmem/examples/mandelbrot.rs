//! A picture of the Mandelbrot set: each of n PEs computes every n-th row, PE 0 gets all rows and
//! prints them.

const WIDTH: usize = 64;
const HEIGHT: usize = 24;
/// The maximum number of steps.
const MAX_STEPS: u8 = 100;
/// The characters of pixels: each is for 11 numbers of steps, the last one for 2.
const SHADES: &[u8] = b" .:-=+*#%@";

/// Returns the number of steps after which the point of a pixel leaves a circle of radius 2, at
/// most `MAX_STEPS`.
fn steps(column: usize, row: usize) -> u8 {
    let x0 = column as f32 / 26.0 - 2.0;
    let y0 = row as f32 / 10.0 - 1.15;
    let mut x = 0.0f32;
    let mut y = 0.0f32;
    for step in 0..MAX_STEPS {
        (x, y) = (x * x - y * y + x0, 2.0 * x * y + y0);
        if x * x + y * y > 4.0 {
            return step;
        }
    }
    MAX_STEPS
}

/// Returns the pixels of a row.
fn pixels(row: usize) -> Vec<u8> {
    (0..WIDTH).map(|column| steps(column, row)).collect()
}

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();

    let rows = shmem.array::<u8>(HEIGHT.div_ceil(n_pes) * WIDTH);
    for (room, row) in rows.chunks(WIDTH).zip((me..HEIGHT).step_by(n_pes)) {
        room.copy_from_slice(&pixels(row));
    }

    shmem.barrier_all();
    if me != 0 {
        println!("PE {me} is done");
        return;
    }
    for row in 0..HEIGHT {
        let owner = shmem.pe(row % n_pes);
        let first = row / n_pes * WIDTH;
        let line = rows[first..first + WIDTH].on(owner).to_vec();
        assert_eq!(line, pixels(row));

        let mut text = String::new();
        for steps in line {
            text.push(SHADES[usize::from(steps) / 11].into());
        }
        println!("{text}");
    }
}
