//! Memory of the program that is symmetric for the time of a closure.

use crate::over_tcp;
use shmem::{NotRegistered, Shmem, Sum, SymSlice};
use std::mem::forget;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

const PES: [usize; 3] = [1, 2, 4];
const LEN: usize = 1 << 17;
/// The number of elements of a vector that the allocator of the C library always maps alone, and
/// unmaps when it is dropped.
const ALONE: usize = 5 << 20;
/// The number of broadcasts that are leaked. They take much longer than the barriers at the end.
const REQUESTS: usize = 50;

/// Returns a part of a vector that begins at another byte of its page on each PE, so that no PE has
/// it at the same offset of the heap; with `equal` at the same byte on all.
fn part<'v>(shmem: &Shmem, vector: &'v mut [u64], equal: bool) -> &'v mut [u64] {
    let first = if equal { 0 } else { 16 * shmem.my_pe() };
    &mut vector[first..first + LEN]
}

/// Uses registered elements by most kinds of calls. Afterwards the value of each is 1 more than its
/// index and the number of the PE before, but of the first one the sum of the numbers of all PEs.
fn use_all(shmem: &Shmem, elements: &SymSlice<u64>) {
    let (me, n) = (shmem.my_pe() as u64, shmem.n_pes() as u64);
    assert_eq!(elements.to_vec(), [7; LEN]);
    shmem.barrier_all();

    let values: Vec<u64> = (0..LEN as u64).map(|i| i + me).collect();
    elements.on(shmem.next()).put(&values);
    shmem.barrier_all();
    let before = (me + n - 1) % n;
    assert!(elements.iter().map(|x| x.load()).eq((before..).take(LEN)));
    assert_eq!(elements.on(shmem.next()).to_vec(), values);
    shmem.barrier_all();

    let bulk: Vec<u64> = values.iter().map(|value| value + 1).collect();
    shmem.scope(|s| elements[1..].on(s.next()).put(&bulk[1..]));
    shmem.barrier_all();
    let (own, sum) = (shmem.boxed(me), &elements[..1]);
    shmem.world().all_reduce_into(&own, sum, Sum);
    elements[1].on(shmem.next()).write(me + 2);
    shmem.wait(elements[1].eq(before + 2));
    assert_eq!(shmem::block_on(shmem.until(elements[1].ne(0))), before + 2);
}

fn are_used(shmem: &Shmem, equal: bool) {
    let (me, n) = (shmem.my_pe() as u64, shmem.n_pes() as u64);
    let mut vector = vec![7; LEN + 16 * shmem.n_pes()];
    for _ in 0..3 {
        vector.fill(7);
        let memory = part(shmem, &mut vector, equal);
        let place = memory.as_ptr();
        let is_in_heap = shmem.with_registered(memory, |elements| {
            use_all(shmem, elements);
            elements.as_ptr().cast_const() != place
        });
        assert_eq!(is_in_heap, Ok(equal || n == 1), "the fast path");

        let before = (me + n - 1) % n;
        assert_eq!(memory[0], n * (n - 1) / 2);
        assert!(memory[1..].iter().copied().eq((before + 2..).take(LEN - 1)));
    }
    assert!(
        vector[LEN + 16 * shmem.my_pe()..]
            .iter()
            .all(|value| *value == 7)
    );
}

shmem::test!(vectors_are_symmetric_meanwhile, pes = PES, |shmem| {
    are_used(&shmem, true);
});

shmem::test!(parts_at_other_bytes_of_a_page, pes = PES, |shmem| {
    are_used(&shmem, false);
});

shmem::test!(one_within_another, pes = 2, |shmem| {
    let mut vector = vec![1u32; 4096];
    let mut other = vec![2u16; ALONE];
    let sums = shmem.with_registered(&mut vector, |outer| {
        shmem.with_registered(&mut other[..3], |inner| {
            outer.on(shmem.next()).put(&[3; 4096]);
            inner.on(shmem.next()).put(&[4; 3]);
        })
    });
    assert_eq!(sums, Ok(Ok(())));
    assert_eq!((vector, &other[..4]), (vec![3; 4096], &[4, 4, 4, 2][..]));
});

shmem::test!(what_cannot_be_registered, pes = 2, |shmem| {
    let never = |_: &SymSlice<u64>| unreachable!("it is not registered");
    let mut on_stack = [1; 1000];
    let refused: Result<(), _> = shmem.with_registered(&mut on_stack, never);
    assert_eq!((refused, on_stack), (Err(NotRegistered), [1; 1000]));
    let mut array = shmem.array(100);
    let refused: Result<(), _> = array.epoch(|own| shmem.with_registered(own, never));
    assert_eq!(refused, Err(NotRegistered));

    // Of one PE alone.
    let mut vector = vec![1; 1000];
    let memory = if shmem.my_pe() == 1 {
        &mut on_stack[..]
    } else {
        &mut vector
    };
    let refused: Result<(), _> = shmem.with_registered(memory, never);
    assert_eq!((refused, &memory[..]), (Err(NotRegistered), &[1; 1000][..]));

    let refused = refused.expect_err("it is on a stack").to_string();
    assert!(refused.contains("the memory of a PE cannot be registered"));
    let nothing: &mut [u64] = &mut [];
    assert_eq!(shmem.with_registered(nothing, |none| none.len()), Ok(0));
});

/// A waker that says whether it was called.
#[derive(Default)]
struct IsWoken(AtomicBool);

impl Wake for IsWoken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

/// Safe code may leak the future of a wait, at whose word the library looks later, and the request
/// of a collective.
fn leak(shmem: &Shmem, equal: bool) {
    let source = shmem.array_from(&[17u64; LEN]);
    // A team whose requests no barrier completes.
    let team = shmem.world().split_strided(0, 1, shmem.n_pes());
    let team = team
        .expect("there are such members")
        .expect("this PE is one");
    let waker = Waker::noop();
    for _ in 0..2 {
        let mut vector = vec![7; ALONE];
        let memory = part(shmem, &mut vector, equal);
        let registered = shmem.with_registered(memory, |elements| {
            let mut future = Box::pin(shmem.until(elements[LEN - 1].eq(99)));
            let polled = future.as_mut().poll(&mut Context::from_waker(waker));
            assert_eq!(polled, Poll::Pending);
            forget(future);
            for _ in 0..REQUESTS {
                forget(team.start_broadcast_into(&source, elements, 0));
            }
        });
        assert_eq!(registered, Ok(()));
        assert_eq!(memory, [17; LEN]);
    }

    // The vectors are unmapped. Whoever wakes this task looks at the words of all.
    let word = shmem.boxed(0u64);
    let woken = Arc::<IsWoken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(shmem.until(word.eq(1)));
    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
    assert_eq!(polled, Poll::Pending);
    shmem.barrier_all();
    word.on(shmem.next()).write(1);
    while !woken.0.load(SeqCst) {
        std::thread::yield_now();
    }
    shmem.barrier_all();
}

shmem::test!(
    nothing_leaked_uses_a_vector_that_has_gone,
    pes = 2,
    |shmem| {
        leak(&shmem, true);
        leak(&shmem, false);
    }
);

// What a thread uses does not move when another one registers memory in the same pages.
shmem::test!(a_thread_registers_beside_another, pes = 2, || {
    let shmem = shmem::init_shared().expect("it is the first");
    let mut vector = vec![0u64; 2 * LEN];
    // In the middle of a page.
    let border = LEN - vector.as_ptr().addr() / 8 % 512 + 256;
    let (used, others) = vector.split_at_mut(border);
    let last = border - 1;

    let registered = shmem.with_registered(used, |used| {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let context = shmem.world().context();
                let word = used[last].on(context.pe((shmem.my_pe() + 1) % 2));
                let mut value = 0;
                while !is_over.load(SeqCst) || value == 0 {
                    value += 1;
                    word.write(value);
                    assert_eq!(word.read(), value, "it is elsewhere");
                }
            });
            for _ in 0..50 {
                let within = shmem.with_registered(&mut others[..100], |_| ());
                let beyond = shmem.with_registered(&mut others[..1000], |_| ());
                assert_eq!((within, beyond), (Ok(()), Err(NotRegistered)));
            }
            is_over.store(true, SeqCst);
        });
    });
    assert_eq!(registered, Ok(()));
    assert!(vector[last] > 0);
});

#[test]
fn over_tcp_too() {
    over_tcp::passes("registered::vectors_are_symmetric_meanwhile");
    over_tcp::passes("registered::parts_at_other_bytes_of_a_page");
    over_tcp::passes("registered::nothing_leaked_uses_a_vector_that_has_gone");
}
