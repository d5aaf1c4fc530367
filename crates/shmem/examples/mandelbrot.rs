//! A picture of the Mandelbrot set, which is distributed over the PEs: the threads of each PE
//! compute its pixels, PE 0 gets all and prints them.

use rayon::prelude::*;

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

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe();
    let mut picture = shmem.world().block_array::<u8>(WIDTH * HEIGHT);
    let own = picture.own_range();
    picture.epoch(|pixels| {
        let of_own = pixels.par_iter_mut().zip(own);
        of_own.for_each(|(pixel, i)| *pixel = steps(i % WIDTH, i / WIDTH));
    });

    if me != 0 {
        println!("PE {me} is done");
        return;
    }
    for (row, pixels) in picture.read(..).chunks(WIDTH).enumerate() {
        let mut text = String::new();
        for (column, &pixel) in pixels.iter().enumerate() {
            assert_eq!(pixel, steps(column, row));
            text.push(SHADES[usize::from(pixel) / 11].into());
        }
        println!("{text}");
    }
}
