//! The functions that libfabric's headers define inline: each looks up an operation in the table of
//! its object and calls it. Several functions of the headers may be one here, such as `fi_bind`;
//! the comment of each names them.
//!
//! All have the same contract: the objects are open, and the same library has opened them and
//! filled in their tables; the manual page of the function says the rest. The body of each
//! dereferences the object and its table, and calls the operation, which this contract permits.
#![allow(unsafe_code)]

use crate::bindings::*;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;

/// The reason why no entry of a table is empty: libfabric requires providers to fill in all. The
/// text of the panic if one is empty nevertheless.
const FILLED: &str = "libfabric fills its tables of operations";

/// Defines a function for each row: its documentation, its signature and the call that it makes.
macro_rules! calls {
    ($($(#[doc = $doc:literal])+ fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $body:expr;)*) => {$(
        $(#[doc = $doc])+
        ///
        /// # Safety
        /// The module's contract.
        #[inline(always)]
        #[expect(clippy::allow_attributes, reason = "some of the calls have fewer arguments")]
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name($($arg: $type),*) -> $result {
            // SAFETY: by the module's contract.
            unsafe { $body }
        }
    )*};
}

calls! {
    /// `fi_close`.
    fn fi_close(fid: *mut fid) -> c_int = (*(*fid).ops).close.expect(FILLED)(fid);
    /// `fi_domain`.
    fn fi_domain(fabric: *mut fid_fabric, info: *mut fi_info, domain: &mut *mut fid_domain) -> c_int =
        (*(*fabric).ops).domain.expect(FILLED)(fabric, info, domain, null_mut());
    /// `fi_trywait` of one object.
    fn fi_trywait(fabric: *mut fid_fabric, fid: *mut fid) -> c_int = {
        let mut fids = [fid];
        (*(*fabric).ops).trywait.expect(FILLED)(fabric, fids.as_mut_ptr(), 1)
    };
    /// `fi_av_open`.
    fn fi_av_open(domain: *mut fid_domain, attr: &mut fi_av_attr, av: &mut *mut fid_av) -> c_int =
        (*(*domain).ops).av_open.expect(FILLED)(domain, attr, av, null_mut());
    /// `fi_av_insert` of one address.
    fn fi_av_insert(av: *mut fid_av, address: *const c_void, at: &mut fi_addr_t) -> c_int =
        (*(*av).ops).insert.expect(FILLED)(av, address, 1, at, 0, null_mut());
    /// `fi_cq_open`.
    fn fi_cq_open(domain: *mut fid_domain, attr: &mut fi_cq_attr, cq: &mut *mut fid_cq) -> c_int =
        (*(*domain).ops).cq_open.expect(FILLED)(domain, attr, cq, null_mut());
    /// `fi_cq_read`.
    fn fi_cq_read(cq: *mut fid_cq, entries: *mut c_void, count: usize) -> isize =
        (*(*cq).ops).read.expect(FILLED)(cq, entries, count);
    /// `fi_cq_readerr`.
    fn fi_cq_readerr(cq: *mut fid_cq, entry: &mut fi_cq_err_entry) -> isize =
        (*(*cq).ops).readerr.expect(FILLED)(cq, entry, 0);
    /// `fi_cq_strerror`.
    fn fi_cq_strerror(cq: *mut fid_cq, entry: &fi_cq_err_entry, text: *mut c_char, nbytes: usize) -> *const c_char =
        (*(*cq).ops).strerror.expect(FILLED)(cq, entry.prov_errno, entry.err_data, text, nbytes);
    /// `fi_control` of `FI_GETWAIT`.
    fn fi_getwait(fid: *mut fid, fd: &mut c_int) -> c_int =
        (*(*fid).ops).control.expect(FILLED)(fid, GETWAIT, core::ptr::from_mut(fd).cast());
    /// `fi_endpoint`.
    fn fi_endpoint(domain: *mut fid_domain, info: *mut fi_info, ep: &mut *mut fid_ep) -> c_int =
        (*(*domain).ops).endpoint.expect(FILLED)(domain, info, ep, null_mut());
    /// `fi_ep_bind` and `fi_mr_bind`.
    fn fi_bind(fid: *mut fid, to: *mut fid, flags: u64) -> c_int =
        (*(*fid).ops).bind.expect(FILLED)(fid, to, flags);
    /// `fi_enable` and `fi_mr_enable`.
    fn fi_enable(fid: *mut fid) -> c_int =
        (*(*fid).ops).control.expect(FILLED)(fid, ENABLE, null_mut());
    /// `fi_setname`.
    fn fi_setname(ep: *mut fid_ep, address: *mut c_void, nbytes: usize) -> c_int =
        (*(*ep).cm).setname.expect(FILLED)(&raw mut (*ep).fid, address, nbytes);
    /// `fi_getname`.
    fn fi_getname(ep: *mut fid_ep, address: *mut c_void, nbytes: &mut usize) -> c_int =
        (*(*ep).cm).getname.expect(FILLED)(&raw mut (*ep).fid, address, nbytes);
    /// `fi_mr_reg`.
    fn fi_mr_reg(domain: *mut fid_domain, base: *const c_void, nbytes: usize, access: u64, key: u64, mr: &mut *mut fid_mr) -> c_int =
        (*(*domain).mr).reg.expect(FILLED)(&raw mut (*domain).fid, base, nbytes, access, 0, key, 0, mr, null_mut());
    /// `fi_mr_raw_attr`: stores the base address and the raw key. `nbytes` is the room for the key;
    /// its length is stored there, also if the room is too small.
    fn fi_raw_key(mr: *mut fid_mr, base: &mut u64, key: *mut u8, nbytes: &mut usize) -> c_int = {
        let mut attr = fi_mr_raw_attr { flags: 0, base_addr: base, raw_key: key, key_size: nbytes };
        (*(*mr).fid.ops).control.expect(FILLED)(&raw mut (*mr).fid, GET_RAW_MR, (&raw mut attr).cast())
    };
    /// `fi_mr_map_raw`.
    fn fi_map_raw_key(domain: *mut fid_domain, base: u64, raw: *const u8, nbytes: usize, key: &mut u64) -> c_int = {
        let mut map = fi_mr_map_raw { flags: 0, base_addr: base, raw_key: raw.cast_mut(), key_size: nbytes, key };
        (*(*domain).fid.ops).control.expect(FILLED)(&raw mut (*domain).fid, MAP_RAW_MR, (&raw mut map).cast())
    };
    /// `fi_mr_unmap_key`.
    fn fi_unmap_key(domain: *mut fid_domain, key: u64) -> c_int = {
        let mut key = key;
        (*(*domain).fid.ops).control.expect(FILLED)(&raw mut (*domain).fid, UNMAP_KEY, (&raw mut key).cast())
    };
    /// `fi_read`.
    fn fi_read(ep: *mut fid_ep, to: *mut c_void, nbytes: usize, desc: *mut c_void, from: fi_addr_t, address: u64, key: u64, context: *mut c_void) -> isize =
        (*(*ep).rma).read.expect(FILLED)(ep, to, nbytes, desc, from, address, key, context);
    /// `fi_write`.
    fn fi_write(ep: *mut fid_ep, from: *const c_void, nbytes: usize, desc: *mut c_void, to: fi_addr_t, address: u64, key: u64, context: *mut c_void) -> isize =
        (*(*ep).rma).write.expect(FILLED)(ep, from, nbytes, desc, to, address, key, context);
    /// `fi_writemsg`.
    fn fi_writemsg(ep: *mut fid_ep, message: &fi_msg_rma, flags: u64) -> isize =
        (*(*ep).rma).writemsg.expect(FILLED)(ep, message, flags);
    /// `fi_inject_write`.
    fn fi_inject_write(ep: *mut fid_ep, from: *const c_void, nbytes: usize, to: fi_addr_t, address: u64, key: u64) -> isize =
        (*(*ep).rma).inject.expect(FILLED)(ep, from, nbytes, to, address, key);
    /// `fi_fetch_atomic` of one word.
    fn fi_fetch_atomic(ep: *mut fid_ep, operand: *const c_void, desc: *mut c_void, result: *mut c_void, result_desc: *mut c_void, to: fi_addr_t, address: u64, key: u64, datatype: fi_datatype, op: fi_op, context: *mut c_void) -> isize =
        (*(*ep).atomic).readwrite.expect(FILLED)(ep, operand, 1, desc, result, result_desc, to, address, key, datatype, op, context);
    /// `fi_compare_atomic` of one word.
    fn fi_compare_atomic(ep: *mut fid_ep, operand: *const c_void, desc: *mut c_void, compare: *const c_void, compare_desc: *mut c_void, result: *mut c_void, result_desc: *mut c_void, to: fi_addr_t, address: u64, key: u64, datatype: fi_datatype, op: fi_op, context: *mut c_void) -> isize =
        (*(*ep).atomic).compwrite.expect(FILLED)(ep, operand, 1, desc, compare.cast_mut(), compare_desc.cast(), result, result_desc, to, address, key, datatype, op, context);
    /// `fi_fetch_atomicvalid`.
    fn fi_fetch_atomicvalid(ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, most: &mut usize) -> c_int =
        (*(*ep).atomic).readwritevalid.expect(FILLED)(ep, datatype, op, most);
    /// `fi_compare_atomicvalid`.
    fn fi_compare_atomicvalid(ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, most: &mut usize) -> c_int =
        (*(*ep).atomic).compwritevalid.expect(FILLED)(ep, datatype, op, most);
    /// `fi_send`.
    fn fi_send(ep: *mut fid_ep, from: *const c_void, nbytes: usize, desc: *mut c_void, to: fi_addr_t, context: *mut c_void) -> isize =
        (*(*ep).msg).send.expect(FILLED)(ep, from, nbytes, desc, to, context);
    /// `fi_sendv`.
    fn fi_sendv(ep: *mut fid_ep, from: *const iovec, descs: *mut *mut c_void, n: usize, to: fi_addr_t, context: *mut c_void) -> isize =
        (*(*ep).msg).sendv.expect(FILLED)(ep, from, descs, n, to, context);
    /// `fi_inject`.
    fn fi_inject(ep: *mut fid_ep, from: *const c_void, nbytes: usize, to: fi_addr_t) -> isize =
        (*(*ep).msg).inject.expect(FILLED)(ep, from, nbytes, to);
    /// `fi_recv`, from any peer.
    fn fi_recv(ep: *mut fid_ep, to: *mut c_void, nbytes: usize, desc: *mut c_void, context: *mut c_void) -> isize =
        (*(*ep).msg).recv.expect(FILLED)(ep, to, nbytes, desc, ADDR_UNSPEC, context);
}
