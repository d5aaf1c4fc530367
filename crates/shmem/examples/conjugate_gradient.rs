//! The method of conjugate gradients for a tridiagonal system, whose rows are distributed over the
//! PEs. Neighbors exchange values by single puts, and sums are reduced over all PEs.

use shmem::{Shmem, Sum, SymArray};

/// The number of rows of each PE.
const ROWS: usize = 24;

/// The matrix of second differences, for values that are zero beyond the ends.
struct Laplace<'s> {
    shmem: &'s Shmem,
    /// The adjacent elements of the previous PE and of the next PE.
    beside: SymArray<'s, f64>,
}

impl<'s> Laplace<'s> {
    fn new(shmem: &'s Shmem) -> Laplace<'s> {
        Laplace {
            shmem,
            beside: shmem.array(2),
        }
    }

    /// Returns this PE's rows of the product with a vector. Collective: all PEs call, and must call
    /// a reduction over all PEs before the next call.
    fn times(&self, x: &[f64]) -> Vec<f64> {
        if let Some(before) = self.shmem.neighbor(-1) {
            self.beside[1].on(before).write(x[0]);
        }
        if let Some(after) = self.shmem.neighbor(1) {
            self.beside[0].on(after).write(x[ROWS - 1]);
        }
        self.shmem.barrier_all();

        let mut with_neighbors = vec![self.beside[0].load()];
        with_neighbors.extend(x);
        with_neighbors.push(self.beside[1].load());

        let mut product = Vec::new();
        for around in with_neighbors.windows(3) {
            product.push(2.0 * around[1] - around[0] - around[2]);
        }
        product
    }
}

/// Returns `x` plus `factor` times `y`.
fn plus(x: &[f64], factor: f64, y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x + factor * y).collect()
}

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();
    let world = shmem.world();
    let dot = |x: &[f64], y: &[f64]| {
        let own: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
        world.all_reduce(own, Sum)
    };

    let laplace = Laplace::new(&shmem);
    let mut x = vec![0.0; ROWS];
    let mut rest = vec![1.0; ROWS];
    let mut direction = rest.clone();
    let mut square = dot(&rest, &rest);
    let mut steps = 0;

    while square > 1e-20 && steps < 2 * ROWS * n_pes {
        let product = laplace.times(&direction);
        let length = square / dot(&direction, &product);
        x = plus(&x, length, &direction);
        rest = plus(&rest, -length, &product);
        let before = std::mem::replace(&mut square, dot(&rest, &rest));
        direction = plus(&rest, square / before, &direction);
        steps += 1;
    }

    // The solution is a parabola.
    let all = (ROWS * n_pes) as f64;
    for (i, x) in x.iter().enumerate() {
        let row = (me * ROWS + i + 1) as f64;
        assert!((x - row * (all + 1.0 - row) / 2.0).abs() < 1e-6);
    }
    println!("PE {me} has its part of the solution after {steps} steps");
}
