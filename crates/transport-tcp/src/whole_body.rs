//! Collects a body that is used as a whole: a message with a batch, or a reply with its results.

/// The bytes of a body that have arrived. It uses no memory between two bodies.
#[derive(Default)]
pub(crate) struct WholeBody(Vec<u8>);

impl WholeBody {
    /// Adds the next bytes of a body of `nbytes` bytes. Passes the body to `whole` once it is
    /// complete.
    pub(crate) fn take<T>(
        &mut self,
        nbytes: usize,
        bytes: &[u8],
        whole: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        if bytes.len() == nbytes {
            return Some(whole(bytes));
        }
        self.0.extend_from_slice(bytes);
        (self.0.len() == nbytes).then(|| whole(&std::mem::take(&mut self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_used_once_however_it_is_cut() {
        let body: Vec<u8> = (0..100).collect();
        for length in [1, 7, 50, 99, 100] {
            let mut whole = WholeBody::default();
            let mut used = Vec::new();
            for part in body.chunks(length) {
                used.extend(whole.take(body.len(), part, <[u8]>::to_vec));
            }
            assert_eq!(used, [&body[..]], "in parts of {length} bytes");
            assert_eq!(whole.0.capacity(), 0, "nothing is kept");
        }
    }
}
