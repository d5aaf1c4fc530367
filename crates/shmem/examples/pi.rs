//! An estimate of pi: every PE throws darts at a square, and the hits of all PEs are added up.

use shmem::Sum;

const DARTS: u64 = 100_000;

/// Returns a number from 0 to 1 that looks random.
fn random(i: u64) -> f64 {
    let mixed = (i ^ (i >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    ((mixed ^ (mixed >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d) >> 11) as f64 / (1u64 << 53) as f64
}

fn main() {
    let shmem = shmem::init();
    let first = shmem.my_pe() as u64 * DARTS;
    let hits = |i: &u64| random(2 * i).hypot(random(2 * i + 1)) <= 1.0;
    let hits = (first..first + DARTS).filter(hits).count() as u64;
    let all = shmem.world().all_reduce(hits, Sum);
    let pi = 4.0 * all as f64 / (DARTS * shmem.n_pes() as u64) as f64;
    assert!((pi - std::f64::consts::PI).abs() < 0.05);
    println!(
        "PE {} had {hits} hits of {all}: pi is about {pi:.3}",
        shmem.my_pe()
    );
}
