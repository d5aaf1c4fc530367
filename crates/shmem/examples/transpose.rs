//! The transpose of a matrix whose rows are distributed over the PEs: each PE issues non-blocking
//! gets of a block of every PE, which are all complete at the end of the scope.

/// The number of rows of each PE.
const ROWS: usize = 6;

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();
    let size = ROWS * n_pes;
    let value = |row: usize, column: usize| (1000 * row + column) as u32;

    // The part of each PE is stored as a row of square blocks, so that the elements of a block are
    // adjacent.
    let matrix = shmem.array_from_fn(ROWS * size, |element| {
        let (block, i) = (element / (ROWS * ROWS), element % (ROWS * ROWS));
        value(me * ROWS + i / ROWS, block * ROWS + i % ROWS)
    });

    // Gets block number `me` of every PE, and transposes each block by itself.
    let mut blocks = vec![0; ROWS * size];
    let wanted = &matrix[me * ROWS * ROWS..(me + 1) * ROWS * ROWS];
    shmem.scope(|s| {
        for (block, peer) in blocks.chunks_mut(ROWS * ROWS).zip(s.peers()) {
            wanted.on(peer).get(block);
        }
    });

    for row in 0..ROWS {
        for column in 0..size {
            let transposed = blocks[column * ROWS + row];
            assert_eq!(transposed, value(column, me * ROWS + row));
        }
    }
    println!("PE {me} has {ROWS} rows of the transpose");
}
