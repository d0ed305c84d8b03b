//! Settings of the allocator: return of freed memory to the system, huge pages for long
//! allocations, and an orderly end of the process if the system refuses memory.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Duration;

use memmap2::MmapMut;

use crate::console::notify;
use crate::error::{Error, Result};
use crate::leftovers;

/// Minimum size of an allocation that is returned to the system as soon as it is freed, in bytes.
const LARGE_BYTES: i32 = 4 << 20;

/// Minimum size of an allocation for which huge pages are requested, in bytes. With huge pages,
/// random reads take half the time, and the first write to memory a third. The unused part of the
/// last page is at most a sixteenth of such an allocation.
const HUGE_PAGE_BYTES: usize = 32 << 20;

/// Maximum free memory at the top of a heap that is kept, in bytes. Its default would be 128 KiB as
/// soon as the threshold above is set, and then the buffer of each file that is read would be
/// returned to the system and requested again.
const MAX_FREE_TOP_BYTES: i32 = 2 << 20;

/// Makes the allocator map large allocations separately and return them to the system when they are
/// freed. By default glibc begins to take them from its heap, which cannot shrink while a small
/// allocation lies above: a process then holds up to a sixth more memory than it uses. This setting
/// costs 1 to 4 percent of the time. It has no effect with other allocators.
pub fn release_large_allocations() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call only sets parameters of the allocator, which is allowed at any time.
    unsafe {
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        nix::libc::mallopt(nix::libc::M_TRIM_THRESHOLD, MAX_FREE_TOP_BYTES);
    }
}

/// Returns freed memory between live allocations to the system. By default glibc keeps it for the
/// heap of the thread that used it. It has no effect with other allocators.
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` may be called at any time.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}

/// The system's allocator with an orderly failure. After a call of [`end_in_order`], an allocation
/// that the system refuses ends the process with [`Error::NoMemory`], and removes the files that
/// must not outlive the process. Without it, Rust would end the process with SIGABRT.
pub struct Heap;

/// Size of the address space that is reserved for ending the process, in bytes. It is not touched
/// before.
const RESERVE: usize = 32 << 20;

/// Size of a test allocation, in bytes. If it succeeds, the process is not out of memory, because
/// libraries request less at a time.
const TEST_BYTES: usize = 16 << 20;

/// Parts of the messages of `zstd`, in a panic or an error, when it gets no memory. They are
/// recognised because memory may be free again by the time of the check.
const ZSTD_MESSAGES: [&str; 2] = ["zstd returned null pointer", "not enough memory"];

/// Maximum size of an allocation whose refusal ends the process, in bytes. The refusal of a larger
/// one is returned to the caller, because a library may try to allocate a length that it has read
/// from a damaged file.
const MAX_FATAL_BYTES: usize = 16 << 30;

/// Time within which the ending thread has ended the process, in seconds.
const PATIENCE: u64 = 10;

static RESERVED_MEMORY: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static IS_ENDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// True on the thread that ends the process.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// Makes the process end in order as soon as the system refuses memory.
///
/// # Errors
/// Returns [`Error::NoMemory`] if the reserve for that cannot be mapped.
pub fn end_in_order() -> Result<()> {
    let mut reserve = MmapMut::map_anon(RESERVE).map_err(|_| no_memory(RESERVE))?;
    RESERVED_MEMORY.store(reserve.as_mut_ptr(), Ordering::Release);
    std::mem::forget(reserve);
    let previous_hook = take_hook();
    set_hook(Box::new(move |panic| {
        end_if_for_want_of_memory(message_of(panic).unwrap_or_default());
        previous_hook(panic);
    }));
    Ok(())
}

/// Returns the message of a panic.
pub fn message_of<'p>(panic: &'p PanicHookInfo<'_>) -> Option<&'p str> {
    let payload = panic.payload();
    payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str))
}

/// Ends the process if a library has failed or panicked with `message` because of a lack of memory.
pub fn end_if_for_want_of_memory(message: &str) {
    if ZSTD_MESSAGES.iter().any(|text| message.contains(text)) || MmapMut::map_anon(TEST_BYTES).is_err() {
        refused(TEST_BYTES);
    }
}

fn no_memory(bytes: usize) -> Error {
    Error::NoMemory { what: "this process".into(), needed_bytes: bytes as u64 }
}

#[cold]
fn refused(bytes: usize) {
    if bytes > MAX_FATAL_BYTES || ENDS.get() {
        return;
    }
    if IS_ENDING.swap(true, Ordering::AcqRel) {
        wait_for_the_end();
        return;
    }
    let reserved = RESERVED_MEMORY.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if reserved.is_null() {
        IS_ENDING.store(false, Ordering::Release);
        return;
    }
    ENDS.set(true);
    // SAFETY: the reserve was mapped with this length, nothing refers to it, and the atomic swap
    // makes this thread its only owner.
    unsafe { nix::libc::munmap(reserved.cast(), RESERVE) };
    let error = no_memory(bytes);
    notify(format_args!("error: {error}"));
    leftovers::exit_from_anywhere(error.exit_code())
}

/// Blocks this thread, so that it neither creates files nor takes the memory that the ending thread
/// needs. The ending thread itself passes.
#[cold]
fn wait_for_the_end() {
    if !ENDS.get() {
        std::thread::sleep(Duration::from_secs(PATIENCE));
    }
}

#[inline]
fn before_it_is_asked() {
    if IS_ENDING.load(Ordering::Relaxed) {
        wait_for_the_end();
    }
}

/// Returns `memory`, or ends the process if the system has refused `bytes`.
#[inline]
fn check_allocation(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        refused(bytes);
    }
    memory
}

/// Requests huge pages for a long allocation. Small systems have none, and most systems use them
/// only on request.
#[inline]
fn request_huge_pages(memory: *mut u8, bytes: usize) -> *mut u8 {
    if bytes >= HUGE_PAGE_BYTES && !memory.is_null() {
        ask_for_huge_pages(memory, bytes);
    }
    memory
}

/// Advises huge pages for the whole mapping of an allocation, including the bytes that the
/// allocator uses before and after it. If only a part were advised, the system would split the
/// mapping, could not move it as a whole when the allocation grows, and would copy it.
#[cold]
fn ask_for_huge_pages(memory: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let start = memory.addr() / PAGE * PAGE;
        let length = (memory.addr() + bytes).next_multiple_of(PAGE) - start;
        // SAFETY: each of these pages contains a part of the allocation, so all are mapped, and the
        // advice does not change their content. The system may ignore the advice.
        unsafe { nix::libc::madvise(memory.with_addr(start).cast(), length, nix::libc::MADV_HUGEPAGE) };
    }
}

// SAFETY: all calls are forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        before_it_is_asked();
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        request_huge_pages(check_allocation(unsafe { System.alloc(layout) }, layout.size()), layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        before_it_is_asked();
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        request_huge_pages(check_allocation(unsafe { System.alloc_zeroed(layout) }, layout.size()), layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        before_it_is_asked();
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        request_huge_pages(check_allocation(unsafe { System.realloc(memory, layout, size) }, size), size)
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// Returns the first and the last address of the mapping that contains an address.
    fn mapping_of(memory: *mut u8) -> (usize, usize) {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let ranges = maps.lines().map(|line| {
            let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
            [start, end].map(|at| usize::from_str_radix(at, 16).unwrap())
        });
        let [start, end] = ranges.into_iter().find(|[start, end]| (start..end).contains(&&memory.addr())).unwrap();
        (start, end)
    }

    #[test]
    fn a_long_allocation_is_one_mapping_that_grows_without_a_copy() {
        release_large_allocations();
        let layout = Layout::from_size_align(3 * HUGE_PAGE_BYTES + 5, 8).unwrap();
        // SAFETY: the layout is not empty, and the memory is grown and freed with its current
        // layout.
        unsafe {
            let memory = Heap.alloc(layout);
            let (start, end) = mapping_of(memory);
            assert!(start <= memory.addr() && memory.addr() + layout.size() <= end);
            let grown = Heap.realloc(memory, layout, 5 * HUGE_PAGE_BYTES);
            let (start, end) = mapping_of(grown);
            assert!(start <= grown.addr() && grown.addr() + 5 * HUGE_PAGE_BYTES <= end);
            Heap.dealloc(grown, Layout::from_size_align(5 * HUGE_PAGE_BYTES, 8).unwrap());
        }
    }
}
