//! The encoding of atomic operations for UCX.
#![allow(unsafe_code)]

use super::UcpRemote;
use rushmem_transport::{AmoOp, AmoWidth};
use std::ffi::c_void;
use ucx_sys::{
    UCP_ATOMIC_OP_ADD, UCP_ATOMIC_OP_AND, UCP_ATOMIC_OP_CSWAP, UCP_ATOMIC_OP_OR,
    UCP_ATOMIC_OP_SWAP, UCP_ATOMIC_OP_XOR, UCP_DATATYPE_SHIFT, UCP_OP_ATTR_FIELD_DATATYPE,
    UCP_OP_ATTR_FIELD_REPLY_BUFFER, Ucp, ucp_atomic_op_t, ucp_request_param_t, ucs_status_ptr_t,
};

/// An atomic operation in UCX's encoding. All of them fetch the old value.
pub(crate) struct UcpAtomic {
    code: ucp_atomic_op_t,
    /// The value of the first argument.
    pub(crate) first: u64,
    /// The value of the second argument, which UCX replaces by the old value.
    pub(crate) second: u64,
}

/// The words that UCX reads as the arguments of an atomic operation.
#[derive(Clone, Copy)]
pub(crate) struct AtomicArguments {
    pub(crate) first: *const c_void,
    /// The second argument, which UCX replaces by the old value.
    pub(crate) second: *mut c_void,
}

impl UcpAtomic {
    /// Returns true if UCX has an operation. It has none that adds floating-point numbers.
    pub(crate) fn has(op: AmoOp) -> bool {
        op != AmoOp::AddFloat
    }

    /// Returns an operation that UCX [has](Self::has).
    pub(crate) fn new(op: AmoOp, operand: u64, condition: u64) -> UcpAtomic {
        let (code, first, second) = match op {
            AmoOp::Fetch => (UCP_ATOMIC_OP_ADD, 0, 0),
            AmoOp::Add => (UCP_ATOMIC_OP_ADD, operand, 0),
            AmoOp::Set | AmoOp::Swap => (UCP_ATOMIC_OP_SWAP, operand, 0),
            AmoOp::CompareSwap => (UCP_ATOMIC_OP_CSWAP, condition, operand),
            AmoOp::And => (UCP_ATOMIC_OP_AND, operand, 0),
            AmoOp::Or => (UCP_ATOMIC_OP_OR, operand, 0),
            AmoOp::Xor => (UCP_ATOMIC_OP_XOR, operand, 0),
            AmoOp::AddFloat => unreachable!("composed of a compare-and-swap"),
        };
        UcpAtomic {
            code,
            first,
            second,
        }
    }

    /// Starts the operation on the word at `remote`. Returns UCX's request, or a status if there is
    /// none. If `params` has a callback, UCX calls it when the operation of a request ends.
    ///
    /// # Safety
    /// The endpoint is live, and the key was unpacked for it. `arguments` points to words of this
    /// width with the values `self.first` and `self.second`, which are valid until the operation
    /// ends.
    pub(crate) unsafe fn begin(
        &self,
        ucp: &Ucp,
        remote: UcpRemote,
        width: AmoWidth,
        arguments: AtomicArguments,
        mut params: ucp_request_param_t,
    ) -> ucs_status_ptr_t {
        params.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        params.datatype = (width.nbytes() as u64) << UCP_DATATYPE_SHIFT;
        params.reply_buffer = arguments.second;

        let params = &raw const params;
        // SAFETY: by contract, the endpoint is live, the key was unpacked for it, and the arguments
        // point to words that are valid until the operation ends.
        unsafe {
            ucp.ucp_atomic_op_nbx(
                remote.endpoint,
                self.code,
                arguments.first,
                1,
                remote.address,
                remote.key,
                params,
            )
        }
    }
}
