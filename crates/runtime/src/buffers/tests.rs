//! What a PE keeps of its buffers and blocks, without pages.

use super::*;

fn run(pages: Range<usize>, block: u64) -> Run {
    Run {
        pages,
        offset: block,
        block,
    }
}

fn at(offset: u64) -> Change {
    Change {
        offset,
        ..Change::default()
    }
}

/// Two PEs; this one is PE 0.
#[test]
fn a_block_is_free_when_no_pe_has_a_run_in_it() {
    let mut state = BufferState::default();
    let new = |start: usize| Some((start..start + 100, false));
    let unused = state.apply(&[at(4096), at(4096)], new(1000), Some((4096, 2)));
    assert!(unused.is_empty());
    assert_eq!(state.equal_offset(1000), Some(4096));

    // The second one is in the run of the first on PE 1, and merges with it here.
    let mut here = at(20_000);
    here.moves.push(Move {
        from: 4096,
        nbytes: 4096,
        to: 16_384,
    });
    here.left.push(4096);
    let unused = state.apply(&[here, at(4300)], new(5000), Some((16_384, 1)));
    assert!(unused.is_empty(), "PE 1 has a run in the first block");
    assert_eq!(state.equal_offset(1000), None);
    let offsets = &state.buffers[0].offsets;
    assert_eq!([offsets.on(0), offsets.on(1)], [16_384, 4096]);
    assert_eq!(
        [state.number_at(1000), state.number_at(5000)],
        [Some(0), Some(1)]
    );

    let mut there = at(0);
    there.left.push(4096);
    assert_eq!(state.apply(&[at(0), there], None, None), [4096]);
    assert_eq!(state.blocks.into_iter().collect::<Vec<_>>(), [(16_384, 1)]);
}

#[test]
fn a_block_is_left_with_its_last_run() {
    let mut state = BufferState {
        runs: vec![run(0..4096, 8192), run(8192..12_288, 8192)],
        ..BufferState::default()
    };
    state.leave(std::iter::once(8192));
    assert!(state.change().left.is_empty());
    state.runs.clear();
    state.leave([8192, 8192].into_iter());
    assert_eq!(state.change().left, [8192]);
}

#[test]
fn a_block_is_used_as_long_as_a_lost_buffer_of_it_is_registered() {
    let mut state = BufferState::default();
    let new = Some((1000..1100, false));
    state.apply(&[at(4096), at(4096)], new, Some((4096, 2)));
    state.buffers[0].lost_in = Some(4096);
    state.leave(std::iter::once(4096));
    assert!(state.change().left.is_empty());
    state.buffers.clear();
    state.leave(std::iter::once(4096));
    assert_eq!(state.change().left, [4096]);
}
