//! Collectives on private slices: gathers, scatters and all-to-alls, of the same length on all
//! members or of any (`varying`), which need no symmetric memory. On symmetric memory, where data
//! are copied once, [`Team::all_gather_into`] and others are faster.

use crate::panics::mistake;
use crate::team::Team;
use crate::threads::Threads;
use bytemuck::{Pod, bytes_of_mut, cast_slice, cast_slice_mut};
use rushmem_runtime::Call;
use rushmem_runtime::private::{self, Wanted};

/// The first element and the number of elements of a block of a slice.
type Block = [usize; 2];

impl<C: Threads> Team<'_, C> {
    /// Returns the slices of all members, one after the other in the order of their numbers
    /// (`shmem_fcollect`, §9.10.8). Collective over the team: all members pass the same number of
    /// elements.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let me = shmem.my_pe();
    /// let all = shmem.world().all_gather_slice(&[me, 10 * me]);
    /// assert_eq!(all.len(), 2 * shmem.n_pes());
    /// assert_eq!(all[2 * me..][..2], [me, 10 * me]);
    /// ```
    ///
    /// # Panics
    /// If the members pass different numbers of elements, on all of them.
    #[doc(alias = "shmem_fcollect")]
    #[track_caller]
    pub fn all_gather_slice<T: Pod>(&self, values: &[T]) -> Vec<T> {
        let call = call!("Team::all_gather_slice");
        let nelems = values.len();
        self.require_equal(call, nelems);

        let mut all = self.zeroed_blocks(nelems);
        let wanted = blocks(&mut all, 0, nelems);
        self.exchange(call, values, nelems, wanted);
        all
    }

    /// Returns the slice of each member, which may have any length, in the order of their numbers
    /// (`shmem_collect`, §9.10.8). Collective over the team.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = vec![7; shmem.my_pe()];                  // PE 0 has none
    /// let all = shmem.world().all_gather_varying(&mine);
    /// assert_eq!(all[shmem.n_pes() - 1].len(), shmem.n_pes() - 1);
    /// ```
    #[doc(alias = "shmem_collect")]
    #[track_caller]
    pub fn all_gather_varying<T: Pod>(&self, values: &[T]) -> Vec<Vec<T>> {
        let call = call!("Team::all_gather_varying");
        let lengths = self.values_of_all(call, values.len());
        let mut all = zeroed_vectors(lengths.iter().copied());
        self.exchange(call, values, longest(&lengths), wholes(&mut all));
        all
    }

    /// Returns the slices of all members on member `root`, one after the other in the order of
    /// their numbers, and `None` on the others (`shmemx_gather`, an extension). Collective over the
    /// team: all members pass the same number of elements.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let all = shmem.world().gather(&[shmem.my_pe()], 0);
    /// assert_eq!(all.is_some(), shmem.my_pe() == 0);
    /// assert!(all.is_none_or(|all| all.into_iter().eq(0..shmem.n_pes())));
    /// ```
    ///
    /// # Panics
    /// If there is no such member, or if the members pass different numbers of elements, on all of
    /// them.
    #[doc(alias = "shmemx_gather")]
    #[doc(alias = "gather_into_root")]
    #[track_caller]
    pub fn gather<T: Pod>(&self, values: &[T], root: usize) -> Option<Vec<T>> {
        let call = call!("Team::gather");
        let root = self.root(call, root) as usize;
        let nelems = values.len();
        self.require_equal(call, nelems);

        let mut all = (self.my_pe() == root).then(|| self.zeroed_blocks(nelems));
        let wanted = all.iter_mut().flat_map(|all| blocks(all, 0, nelems));
        self.exchange(call, values, nelems, wanted);
        all
    }

    /// Returns the slice of each member, which may have any length, on member `root`, and `None` on
    /// the others. Collective over the team.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let line = format!("PE {} of {}", shmem.my_pe(), shmem.n_pes());
    /// if let Some(lines) = shmem.world().gather_varying(line.as_bytes(), 0) {
    ///     assert!(lines[0].starts_with(b"PE 0 of "));
    /// }
    /// ```
    ///
    /// # Panics
    /// If there is no such member.
    #[doc(alias = "gather_varcount_into_root")]
    #[track_caller]
    pub fn gather_varying<T: Pod>(&self, values: &[T], root: usize) -> Option<Vec<Vec<T>>> {
        let call = call!("Team::gather_varying");
        let root = self.root(call, root) as usize;
        let lengths = self.values_of_all(call, values.len());

        let is_root = self.my_pe() == root;
        let mut all = is_root.then(|| zeroed_vectors(lengths.iter().copied()));
        let wanted = all.iter_mut().flat_map(|all| wholes(all));
        self.exchange(call, values, longest(&lengths), wanted);
        all
    }

    /// Divides the slice of member `root` into as many blocks as there are members, and returns the
    /// one of this member (`shmemx_scatter`, an extension). The slices of the others are not used.
    /// Collective over the team.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (me, n) = (shmem.my_pe(), shmem.n_pes());
    /// let all: Vec<usize> = if me == 0 { (0..2 * n).collect() } else { vec![] };
    /// let mine = shmem.world().scatter(&all, 0);
    /// assert_eq!(mine, [2 * me, 2 * me + 1]);
    /// ```
    ///
    /// # Panics
    /// If there is no such member, or if the number of elements of its slice is no multiple of the
    /// number of members, on all of them.
    #[doc(alias = "shmemx_scatter")]
    #[doc(alias = "scatter_into_root")]
    #[track_caller]
    pub fn scatter<T: Pod>(&self, values: &[T], root: usize) -> Vec<T> {
        let call = call!("Team::scatter");
        let root = self.root(call, root) as usize;
        let total = self.value_of(call, values.len(), root);
        let nelems = self.block_length(call, total);

        let mut own = vec![T::zeroed(); nelems];
        let wanted = part(root, self.my_pe() * nelems, &mut own);
        self.exchange_from(call, root, values, total, wanted);
        own
    }

    /// Returns the part of this member among `parts` of member `root`, which may have any length.
    /// Those of the others are not used. Collective over the team.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mut parts = Vec::new();
    /// if shmem.my_pe() == 0 {
    ///     parts.extend((0..shmem.n_pes()).map(|pe| vec![3.5; pe]));
    /// }
    /// let mine = shmem.world().scatter_varying(&parts, 0);
    /// assert_eq!(mine, vec![3.5; shmem.my_pe()]);
    /// ```
    ///
    /// # Panics
    /// If there is no such member, or on that member if it has not a part for each one.
    #[doc(alias = "scatter_varcount_into_root")]
    #[track_caller]
    pub fn scatter_varying<T: Pod>(&self, parts: &[impl AsRef<[T]>], root: usize) -> Vec<T> {
        let call = call!("Team::scatter_varying");
        let root = self.root(call, root) as usize;
        let is_root = self.my_pe() == root;
        let (values, layout) = if is_root {
            self.concatenated(call, parts)
        } else {
            (vec![], vec![])
        };

        let n_pes = self.n_pes();
        let mut block: Block = [0; 2];
        let wanted = part(root, self.my_pe(), std::slice::from_mut(&mut block));
        self.exchange_from(call, root, &layout, n_pes, wanted);
        let [first, nelems] = block;

        let total = self.value_of(call, values.len(), root);
        let mut own = vec![T::zeroed(); nelems];
        self.exchange_from(call, root, &values, total, part(root, first, &mut own));
        own
    }

    /// Exchanges blocks: divides the slice of each member into as many blocks as there are members,
    /// and returns the block of this member of each slice, one after the other (`shmem_alltoall`,
    /// §9.10.5). Collective over the team: all members pass the same number of elements.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let outbox = vec![shmem.my_pe(); shmem.n_pes()];
    /// let inbox = shmem.world().all_to_all(&outbox);
    /// assert!(inbox.into_iter().eq(0..shmem.n_pes()));
    /// ```
    ///
    /// # Panics
    /// If the members pass different numbers of elements, or one that is no multiple of the number
    /// of members, on all of them.
    #[doc(alias = "shmem_alltoall")]
    #[track_caller]
    pub fn all_to_all<T: Pod>(&self, values: &[T]) -> Vec<T> {
        let call = call!("Team::all_to_all");
        self.require_equal(call, values.len());
        let nelems = self.block_length(call, values.len());

        let mut inbox = self.zeroed_blocks(nelems);
        let wanted = blocks(&mut inbox, self.my_pe() * nelems, nelems);
        self.exchange(call, values, values.len(), wanted);
        inbox
    }

    /// Exchanges vectors of any length: part `k` goes to member `k`, and part `k` of the result
    /// came from member `k` (`shmemx_alltoallv`, an extension). Collective over the team.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let me = shmem.my_pe();
    /// let outbox: Vec<Vec<usize>> = (0..shmem.n_pes()).map(|pe| vec![me; pe]).collect();
    /// let inbox = shmem.world().all_to_all_varying(&outbox);
    /// assert_eq!(inbox[0], vec![0; me]);                  // me elements from each
    /// assert_eq!(inbox.concat().len(), me * shmem.n_pes());
    /// ```
    ///
    /// # Panics
    /// If there is not a part for each member.
    #[doc(alias = "shmemx_alltoallv")]
    #[doc(alias = "all_to_all_varcount_into")]
    #[track_caller]
    pub fn all_to_all_varying<T: Pod>(&self, parts: &[impl AsRef<[T]>]) -> Vec<Vec<T>> {
        let call = call!("Team::all_to_all_varying");
        let (values, layout) = self.concatenated(call, parts);
        let lengths = self.values_of_all(call, values.len());

        let n_pes = self.n_pes();
        let mut theirs: Vec<Block> = vec![[0; 2]; n_pes];
        let wanted = blocks(&mut theirs, self.my_pe(), 1);
        self.exchange(call, &layout, n_pes, wanted);

        let mut inbox = zeroed_vectors(theirs.iter().map(|[_, nelems]| *nelems));
        let vectors = inbox.iter_mut().zip(theirs).enumerate();
        let wanted = vectors.map(|(member, (into, [first, _]))| part(member, first, into));
        self.exchange(call, &values, longest(&lengths), wanted);
        inbox
    }

    /// Copies parts of the slices of the members. The longest slice has `longest` elements.
    fn exchange<'a, T: Pod>(
        &self,
        call: Call,
        own: &[T],
        longest: usize,
        wanted: impl Iterator<Item = Wanted<'a>>,
    ) {
        let mut wanted: Vec<Wanted<'_>> = wanted.collect();
        let longest = longest.saturating_mul(size_of::<T>());
        private::exchange(call, self.handle(), cast_slice(own), longest, &mut wanted);
    }

    /// Copies a part of the slice of member `root`, which has `nelems` elements.
    fn exchange_from<T: Pod>(
        &self,
        call: Call,
        root: usize,
        values: &[T],
        nelems: usize,
        wanted: Wanted<'_>,
    ) {
        let own = if self.my_pe() == root { values } else { &[] };
        self.exchange(call, own, nelems, std::iter::once(wanted));
    }

    /// Returns the number that member `root` passes.
    fn value_of(&self, call: Call, mut number: usize, root: usize) -> usize {
        private::broadcast(call, self.handle(), bytes_of_mut(&mut number), root as u32);
        number
    }

    /// Returns zeros for `nelems` elements of each member.
    fn zeroed_blocks<T: Pod>(&self, nelems: usize) -> Vec<T> {
        vec![T::zeroed(); nelems.saturating_mul(self.n_pes())]
    }

    /// Returns the elements of all parts, and the place of each part among them. Panics unless
    /// there is a part for each member.
    #[track_caller]
    fn concatenated<T: Pod>(&self, call: Call, parts: &[impl AsRef<[T]>]) -> (Vec<T>, Vec<Block>) {
        let n_pes = self.n_pes();
        let n_parts = parts.len();
        if n_parts != n_pes {
            mistake!(
                call,
                "argument parts has {n_parts} parts, but the team has {n_pes} members; pass one for each, which may be empty"
            );
        }

        let mut values = Vec::new();
        let mut layout = Vec::with_capacity(n_parts);
        for elements in parts {
            let elements = elements.as_ref();
            layout.push([values.len(), elements.len()]);
            values.extend_from_slice(elements);
        }
        (values, layout)
    }

    /// Panics on all members unless they pass the same number of elements.
    #[track_caller]
    fn require_equal(&self, call: Call, nelems: usize) {
        let lengths = self.values_of_all(call, nelems);
        if let Some(other) = lengths.iter().position(|len| *len != lengths[0]) {
            mistake!(
                call,
                "the slice of member 0 has {} elements, and that of member {other} has {}; pass slices of the same \
                 length, or call the routine for varying lengths",
                lengths[0],
                lengths[other]
            );
        }
    }

    /// Returns the number of elements of a block. Panics unless `nelems` elements consist of a
    /// block of the same length for each member.
    #[track_caller]
    fn block_length(&self, call: Call, nelems: usize) -> usize {
        let n_pes = self.n_pes();
        if !nelems.is_multiple_of(n_pes) {
            mistake!(
                call,
                "a slice of {nelems} elements has no equal blocks for {n_pes} members; pass a multiple of their number, \
                 or call the routine for varying lengths"
            );
        }
        nelems / n_pes
    }
}

fn longest(lengths: &[usize]) -> usize {
    lengths.iter().copied().max().unwrap_or(0)
}

fn zeroed_vectors<T: Pod>(lengths: impl Iterator<Item = usize>) -> Vec<Vec<T>> {
    lengths.map(|nelems| vec![T::zeroed(); nelems]).collect()
}

/// Wants the elements of `member` from `first` on.
fn part<T: Pod>(member: usize, first: usize, into: &mut [T]) -> Wanted<'_> {
    Wanted {
        member,
        start: first * size_of::<T>(),
        into: cast_slice_mut(into),
    }
}

/// Wants `nelems` elements of each member, from `first` on.
fn blocks<T: Pod>(all: &mut [T], first: usize, nelems: usize) -> impl Iterator<Item = Wanted<'_>> {
    // There are no blocks of no elements.
    let blocks = all.chunks_exact_mut(nelems.max(1)).enumerate();
    blocks.map(move |(member, into)| part(member, first, into))
}

/// Wants the whole slice of each member.
fn wholes<T: Pod>(all: &mut [Vec<T>]) -> impl Iterator<Item = Wanted<'_>> {
    all.iter_mut()
        .enumerate()
        .map(|(member, into)| part(member, 0, into))
}
