//! A PE of a case: its memory, the transport under test, and endpoints whose failures end the case.
#![allow(unsafe_code)]

use super::job::{self, Position};
use super::memory::PeMemory;
use super::pattern::bytes;
use super::side::Side;
use super::verbs;
use rushmem_transport::mem::{Amo, ArithmeticAmo};
use rushmem_transport::segments::heap_blocks;
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Amos, Buffer, Caps, Completion, DestBuf, Directory, Endpoint,
    EndpointUser, Error, Get, Host, OldValue, Open, Pe, PeRecord, Put, RemoteAddr, Segment,
    SignalOrder, SourceBuf, StridedBlocks, Transport,
};
use std::marker::PhantomData;
use std::sync::Arc;

/// Opens the provider under test.
pub type Opener = fn(&Open) -> Result<Box<dyn Transport>, Error>;

/// Bytes of the internal segment that cases may use.
pub(crate) const INTERNAL_BYTES: usize = 1 << 16;

/// One PE. Fields are dropped in this order: the transport before the memory that it serves.
pub struct Member {
    transport: Box<dyn Transport>,
    heap: PeMemory,
    internal: PeMemory,
    side: Side,
    me: Pe,
    n_pes: u32,
    open: Opener,
    opened_with: Open,
}

struct Silent;

impl Host for Silent {}

impl Member {
    /// Joins the job: opens the transport, registers a heap of this size and an internal segment,
    /// and connects to all PEs.
    pub(crate) fn join(position: Position, open: Opener, heap_bytes: usize) -> Member {
        let Position { pe, n_pes } = position;
        let side = Side::inherited(n_pes);
        // All PEs take the secret of PE 0.
        let secrets = side.exchange(&bytes(u64::from(pe) + 99, 32));
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        let opened_with = Open {
            pe: Pe(pe),
            n_pes,
            secret: secrets[0][..].try_into().expect("a secret of 32 bytes"),
            one_machine: job::is_one_machine(),
            cpus_per_pe: cpus / n_pes,
            amos: Amos::Software,
            part: None,
            host: Arc::new(Silent),
        };
        let mut transport = open(&opened_with).expect("the provider opens");

        let heap = PeMemory::new(heap_bytes);
        let internal = PeMemory::new(INTERNAL_BYTES + heap_blocks::TABLE);
        let mut register = |segment, memory: &PeMemory| {
            // SAFETY: the memory is dropped after the transport.
            let key = unsafe { transport.register(segment, memory.base(), memory.nbytes()) };
            key.expect("the memory is accepted").0
        };

        let heap_keys = side.exchange(&register(Segment::Heap, &heap));
        let internal_keys = side.exchange(&register(Segment::Internal, &internal));
        let addresses = side.exchange(&transport.address());
        transport
            .extend_heap(heap_bytes, &mut |_| Ok(()))
            .expect("the memory is accepted");

        let records = (0..n_pes as usize).map(|pe| {
            let mut keys = [&[][..]; Segment::COUNT];
            keys[Segment::Heap as usize] = &heap_keys[pe];
            keys[Segment::Internal as usize] = &internal_keys[pe];
            PeRecord {
                address: &addresses[pe],
                keys,
            }
        });
        let directory = Directory::new(Directory::encode(records));
        transport
            .connect(Arc::new(directory))
            .expect("a way to every PE");

        let member = Member {
            transport,
            heap,
            internal,
            side,
            me: Pe(pe),
            n_pes,
            open,
            opened_with,
        };
        member.barrier();
        member
    }

    /// Returns the number of this PE in the job.
    pub fn me(&self) -> usize {
        self.me.index()
    }

    /// Returns the number of PEs of the job.
    pub fn n_pes(&self) -> usize {
        self.n_pes as usize
    }

    /// Returns true if operations on the memory of `pe` go over the transport. The runtime accesses
    /// a PE's own memory by the CPU, unless the network carries out the atomic operations.
    pub fn reaches(&self, pe: usize) -> bool {
        pe != self.me() || !self.caps().amos_compose_with_cpu
    }

    /// Returns the PEs whose memory this PE accesses over the transport.
    pub fn peers(&self) -> impl Iterator<Item = usize> {
        (0..self.n_pes()).filter(|&pe| self.reaches(pe))
    }

    /// Returns the PE after this one, around the ring.
    pub(crate) fn right(&self) -> usize {
        (self.me() + 1) % self.n_pes()
    }

    /// Returns the PE before this one, around the ring.
    pub(crate) fn left(&self) -> usize {
        (self.me() + self.n_pes() - 1) % self.n_pes()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.heap.nbytes()
    }

    /// Returns a new endpoint of the transport under test.
    pub fn endpoint(&self) -> TestEndpoint<'_> {
        let endpoint = self.transport.endpoint(EndpointUser::Context);
        TestEndpoint {
            endpoint: endpoint.expect("an endpoint"),
            lifetime: PhantomData,
        }
    }

    /// Returns a new endpoint of the kind that the runtime uses for its own operations.
    pub(crate) fn internal_endpoint(&self) -> TestEndpoint<'_> {
        let endpoint = self.transport.endpoint(EndpointUser::Runtime);
        TestEndpoint {
            endpoint: endpoint.expect("an endpoint"),
            lifetime: PhantomData,
        }
    }

    /// Returns another transport of this PE, in a job of `n_pes` PEs, which is not connected.
    pub(crate) fn open_beside(&self, n_pes: u32) -> Box<dyn Transport> {
        let with = Open {
            n_pes,
            ..self.opened_with.clone()
        };
        (self.open)(&with).expect("the provider opens")
    }

    /// Connects another transport, which all PEs open and connect, and whose heap peers access by
    /// `key`.
    pub(crate) fn connect_beside(&self, transport: &mut dyn Transport, key: &[u8]) {
        let addresses = self.exchange(&transport.address());
        let keys = self.exchange(key);
        let records = addresses.iter().zip(&keys).map(|(address, heap)| PeRecord {
            address,
            keys: [heap, &[], &[]],
        });
        let directory = Directory::new(Directory::encode(records));
        transport.connect(Arc::new(directory)).expect("addresses");
        self.barrier();
    }

    /// Returns the transport under test.
    pub fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    pub(crate) fn caps(&self) -> Caps {
        self.transport.caps()
    }

    /// Waits until all other PEs have called this, too. Does not use the transport.
    pub fn barrier(&self) {
        self.side.barrier();
    }

    /// Waits for all other PEs but the last one, which has died, outside the transport. No barrier
    /// or exchange may follow.
    pub fn barrier_without_the_last(&self) {
        self.side.barrier_without_the_last();
    }

    /// Sends `own` to all PEs and returns the bytes of each PE, outside the transport.
    pub fn exchange(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.side.exchange(own)
    }

    /// Calls `poll` until all other PEs have reached this barrier.
    pub(crate) fn poll_until_barrier(&self, poll: impl FnMut()) {
        self.side.compute_until_barrier(poll);
    }

    /// Computes without a call of the transport until all other PEs have reached this barrier.
    pub(crate) fn compute_until_barrier(&self) {
        let mut sum = 0u64;
        self.side.compute_until_barrier(|| {
            for i in 0..100_000u64 {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(i));
            }
        });
    }

    /// Polls the transport until `ready` returns true.
    pub(crate) fn wait_until(&self, mut ready: impl FnMut() -> bool) {
        while !ready() {
            self.transport.progress().expect("no PE is lost");
            std::thread::yield_now();
        }
    }

    pub(crate) fn read(&self, offset: usize, nbytes: usize) -> Vec<u8> {
        self.heap.read(offset, nbytes)
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        self.heap.write(offset, bytes);
    }

    pub(crate) fn read_internal(&self, offset: usize, nbytes: usize) -> Vec<u8> {
        self.internal.read(offset, nbytes)
    }

    /// Loads a word of this PE's heap atomically, so also while a peer changes it.
    pub fn fetch<T: Amo>(&self, offset: usize) -> T {
        let word = self.heap.word::<T>(offset);
        // SAFETY: `word` is a word of the heap, whose address and alignment were checked.
        unsafe { T::fetch(word) }
    }

    /// Adds to a word of this PE's heap by the CPU.
    pub(crate) fn cpu_add<T: ArithmeticAmo>(&self, offset: usize, value: T) {
        let word = self.heap.word::<T>(offset);
        // SAFETY: `word` is a word of the heap, whose address and alignment were checked.
        unsafe { T::fetch_add(word, value) };
    }
}

/// Returns the address of an offset in a peer's heap.
pub(crate) fn heap(offset: usize) -> RemoteAddr {
    RemoteAddr {
        segment: Segment::Heap,
        offset: offset as u64,
    }
}

/// Returns the address of an offset in a peer's internal segment.
pub(crate) fn internal(offset: usize) -> RemoteAddr {
    RemoteAddr {
        segment: Segment::Internal,
        offset: offset as u64,
    }
}

/// An endpoint in a test. Every error ends the test. The buffers of non-blocking operations are
/// borrowed for longer than the endpoint lives, and its drop completes the operations: never leak
/// one.
pub struct TestEndpoint<'a> {
    endpoint: Box<dyn Endpoint>,
    lifetime: PhantomData<&'a mut [u8]>,
}

/// A word of a PE's heap.
#[derive(Clone, Copy, Debug)]
pub struct TestWord {
    pub(crate) pe: usize,
    pub(crate) offset: usize,
    pub(crate) width: AmoWidth,
}

/// Returns a word of 8 bytes of a PE's heap.
pub fn word(pe: usize, offset: usize) -> TestWord {
    TestWord {
        pe,
        offset,
        width: AmoWidth::Eight,
    }
}

/// Returns a word of 4 bytes of a PE's heap.
pub(crate) fn short_word(pe: usize, offset: usize) -> TestWord {
    TestWord {
        pe,
        offset,
        width: AmoWidth::Four,
    }
}

/// What an atomic operation does to a word.
#[derive(Clone, Copy, Debug)]
pub struct TestAmo {
    pub(crate) op: AmoOp,
    pub(crate) operand: u64,
    pub(crate) condition: u64,
}

impl TestAmo {
    /// Returns an operation that compares nothing.
    pub fn new(op: AmoOp, operand: u64) -> TestAmo {
        TestAmo {
            op,
            operand,
            condition: 0,
        }
    }

    pub(crate) fn compare_swap(condition: u64, operand: u64) -> TestAmo {
        TestAmo {
            op: AmoOp::CompareSwap,
            operand,
            condition,
        }
    }

    pub(crate) fn fetch() -> TestAmo {
        TestAmo::new(AmoOp::Fetch, 0)
    }

    fn on(self, word: TestWord) -> AmoRequest {
        AmoRequest {
            dest: heap(word.offset),
            width: word.width,
            op: self.op,
            operand: self.operand,
            condition: self.condition,
        }
    }
}

/// The signal of a put, on a word of 8 bytes of the same PE's heap.
#[derive(Clone, Copy, Debug)]
pub struct TestSignal {
    pub(crate) offset: usize,
    pub(crate) op: AmoOp,
    pub(crate) value: u64,
}

impl TestSignal {
    fn request(self) -> AmoRequest {
        AmoRequest::of_word(heap(self.offset), self.op, self.value)
    }
}

/// The shape of strided blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestStrides {
    /// The length in bytes of a block.
    pub(crate) nbytes: usize,
    /// The number of blocks.
    pub(crate) n: usize,
    /// The bytes from the start of a block to that of the next one, at the peer.
    pub(crate) remote: usize,
    /// The same, here.
    pub(crate) local: usize,
}

impl TestStrides {
    /// Returns the bytes from the start of the first block to the end of the last one, here.
    pub(crate) fn local_nbytes(self) -> usize {
        (self.n - 1) * self.local + self.nbytes
    }

    /// Returns the bytes from the start of the first block to the end of the last one, at the peer.
    pub(crate) fn remote_nbytes(self) -> usize {
        (self.n - 1) * self.remote + self.nbytes
    }

    /// Returns the blocks that start at an offset of the peer's heap, and at the start of `local`.
    fn blocks<Way>(self, offset: usize, local: Buffer<Way>) -> StridedBlocks<Way> {
        assert!(self.local_nbytes() <= local.nbytes(), "within the slice");
        StridedBlocks {
            remote: heap(offset),
            local,
            nbytes: self.nbytes,
            remote_stride: self.remote,
            local_stride: self.local,
            n: self.n,
        }
    }
}

/// Returns a slice as the source of operations that are complete before it ends.
fn source(bytes: &[u8]) -> SourceBuf {
    // SAFETY: the callers' operations are over before the slice ends.
    unsafe { SourceBuf::new(bytes.as_ptr(), bytes.len()) }
}

/// Returns a slice as the destination of operations that are complete before it ends.
fn dest(bytes: &mut [u8]) -> DestBuf {
    // SAFETY: the callers' operations are over before the slice ends.
    unsafe { DestBuf::new(bytes.as_mut_ptr(), bytes.len()) }
}

fn pe(pe: usize) -> Pe {
    Pe(pe as u32)
}

/// Returns a put that is over before its source ends.
fn put(remote: RemoteAddr, bytes: &[u8], completion: Completion) -> Put {
    Put {
        remote,
        local: source(bytes),
        completion,
    }
}

fn fine<T>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

impl<'a> TestEndpoint<'a> {
    /// Puts to an offset of the heap of PE `to`. The source may be reused at once.
    pub fn put(&mut self, to: usize, offset: usize, source: &[u8]) {
        self.put_at(to, heap(offset), source);
    }

    pub(crate) fn put_at(&mut self, to: usize, dest: RemoteAddr, source: &[u8]) {
        fine(verbs::put(&mut *self.endpoint, pe(to), dest, source));
    }

    /// Puts a word of 8 bytes.
    pub fn put_word(&mut self, to: usize, offset: usize, word: u64) {
        self.put(to, offset, &word.to_ne_bytes());
    }

    /// Starts a put, which the next quiet completes.
    pub fn put_nbi(&mut self, to: usize, offset: usize, source: &'a [u8]) {
        let put = put(heap(offset), source, Completion::AtQuiet);
        fine(self.endpoint.put(pe(to), put));
    }

    /// Gets `nbytes` bytes from an offset of the heap of PE `from`.
    pub fn get(&mut self, from: usize, offset: usize, nbytes: usize) -> Vec<u8> {
        let mut bytes = vec![0xEE; nbytes];
        let got = verbs::get(&mut *self.endpoint, pe(from), &mut bytes, heap(offset));
        fine(got);
        bytes
    }

    /// Puts blocks to an offset of the heap.
    pub(crate) fn put_strided(&mut self, to: usize, offset: usize, source: &[u8], of: TestStrides) {
        let blocks = of.blocks(offset, self::source(source));
        fine(self.endpoint.put_strided(pe(to), blocks));
    }

    /// Gets blocks from an offset of the heap.
    pub(crate) fn get_strided(
        &mut self,
        from: usize,
        offset: usize,
        dest: &mut [u8],
        of: TestStrides,
    ) {
        let blocks = of.blocks(offset, self::dest(dest));
        fine(self.endpoint.get_strided_nbi(pe(from), blocks));
        self.pe_quiet(from);
    }

    /// Starts a get, which the next quiet completes.
    pub fn get_nbi(&mut self, from: usize, offset: usize, dest: &'a mut [u8]) {
        let get = Get {
            remote: heap(offset),
            local: self::dest(dest),
            completion: Completion::AtQuiet,
        };
        fine(self.endpoint.get(pe(from), get));
    }

    /// Carries out a fetching AMO. Returns the old value.
    pub fn amo(&mut self, word: TestWord, amo: TestAmo) -> u64 {
        let request = amo.on(word);
        fine(self.endpoint.amo(pe(word.pe), request, OldValue::Returned))
    }

    /// Starts a fetching AMO. The next quiet stores the old value in `fetched`, which has the width
    /// of the word.
    pub fn amo_nbi(&mut self, fetched: &'a mut [u8], word: TestWord, amo: TestAmo) {
        assert_eq!(fetched.len(), word.width.nbytes());
        let old = OldValue::AtQuiet(dest(fetched));
        fine(self.endpoint.amo(pe(word.pe), amo.on(word), old));
    }

    /// Starts an AMO that fetches nothing.
    pub fn update(&mut self, word: TestWord, amo: TestAmo) {
        let request = amo.on(word);
        fine(self.endpoint.amo(pe(word.pe), request, OldValue::Ignored));
    }

    /// Puts with a signal. The source may be reused at once.
    pub fn put_signal(&mut self, to: usize, offset: usize, source: &[u8], signal: TestSignal) {
        let put = put(heap(offset), source, Completion::Now);
        let signal = signal.request();
        fine(
            self.endpoint
                .put_signal(pe(to), put, signal, SignalOrder::AfterData),
        );
    }

    /// Starts a put with a signal, which the next quiet completes.
    pub fn put_signal_nbi(
        &mut self,
        to: usize,
        offset: usize,
        source: &'a [u8],
        signal: TestSignal,
    ) {
        let put = put(heap(offset), source, Completion::AtQuiet);
        let signal = signal.request();
        fine(
            self.endpoint
                .put_signal(pe(to), put, signal, SignalOrder::AfterData),
        );
    }

    /// Orders the operations before the call before those after it, for each PE.
    pub fn fence(&mut self) {
        fine(self.endpoint.fence());
    }

    /// Completes all operations of the endpoint.
    pub fn quiet(&mut self) {
        fine(self.endpoint.quiet());
    }

    /// Completes all operations of the endpoint, by polling `is_quiet`.
    pub fn poll_until_quiet(&mut self) {
        while !fine(self.endpoint.is_quiet()) {
            std::thread::yield_now();
        }
    }

    /// Completes all operations of the endpoint on PE `to`.
    pub fn pe_quiet(&mut self, to: usize) {
        fine(self.endpoint.pe_quiet(pe(to)));
    }
}
