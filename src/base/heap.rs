//! What the allocator does with memory that is given back to it, where it asks for huge pages, and what becomes of a process to which the system gives none.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Duration;

use memmap2::MmapMut;

use crate::console::tell;
use crate::error::{Error, Result};
use crate::leftovers;

/// Bytes of an allocation that goes back to the system at once when it is freed.
const LARGE: i32 = 4 << 20;

/// Bytes of an allocation for which the system is asked for huge pages: reads here and there take half as long, and memory that is written
/// for the first time a third. What such a page holds beyond the allocation is a sixteenth of it at most.
const LONG: usize = 32 << 20;

/// Bytes at the top of a heap that stay there when they are free; by themselves they would be 128 KiB once the number above is set, and the
/// buffer of each file that is read would go back to the system and come again.
const FREE_AT_THE_TOP: i32 = 2 << 20;

/// From now on large allocations are mapped by themselves and go back to the system when they are freed. Left alone, glibc comes to
/// take them from its heap, of which nothing goes back as long as something small lies above it: a process then holds up to a
/// sixth more than it uses. Costs one to four parts in a hundred of the time. Other allocators are left as they are.
pub fn give_back_large_allocations() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets numbers of the allocator, which may be set at any time.
    unsafe {
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, LARGE);
        nix::libc::mallopt(nix::libc::M_TRIM_THRESHOLD, FREE_AT_THE_TOP);
    }
}

/// Gives the system what has been freed and lies between what has not: left alone, glibc keeps it for the heap of the thread that had
/// it. Another allocator is left as it is.
pub fn give_back_what_is_free() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}

/// The system's allocator. Once [`end_in_order`] was called, an allocation that the system refuses ends the process with
/// [`Error::NoMemory`], as files are removed that must not outlive it; Rust alone would end it by SIGABRT.
pub struct Heap;

/// Bytes of address space that are kept to end with. They are not touched before.
const RESERVE: usize = 32 << 20;

/// A process that gets so many bytes has memory left; libraries ask for less at a time.
const ENOUGH: usize = 16 << 20;

/// What `zstd` says, in a panic or an error, when it gets no memory. There may be some again by then.
const OF_ZSTD: [&str; 2] = ["zstd returned null pointer", "not enough memory"];

/// Larger ones are refused as they are by any system: a library may ask whether it can have what a damaged file says.
const LARGEST: usize = 16 << 30;

/// Seconds within which the thread that ends the process has done so.
const PATIENCE: u64 = 10;

static RESERVED: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static IS_ENDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is the one that ends the process.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// From now on a process that gets no memory ends in order.
///
/// # Errors
/// [`Error::NoMemory`] if there is none to do that with.
pub fn end_in_order() -> Result<()> {
    let mut reserve = MmapMut::map_anon(RESERVE).map_err(|_| no_memory(RESERVE))?;
    RESERVED.store(reserve.as_mut_ptr(), Ordering::Release);
    std::mem::forget(reserve);
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        end_if_for_want_of_memory(message_of(panic).unwrap_or_default());
        before(panic);
    }));
    Ok(())
}

/// The words of a panic.
pub fn message_of<'p>(panic: &'p PanicHookInfo<'_>) -> Option<&'p str> {
    let payload = panic.payload();
    payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str))
}

/// When a library has failed or panicked with `message`: ends the process if that is for want of memory.
pub fn end_if_for_want_of_memory(message: &str) {
    if OF_ZSTD.iter().any(|said| message.contains(said)) || MmapMut::map_anon(ENOUGH).is_err() {
        refused(ENOUGH);
    }
}

fn no_memory(bytes: usize) -> Error {
    Error::NoMemory { what: "this process".into(), needed_bytes: bytes as u64 }
}

#[cold]
fn refused(bytes: usize) {
    if bytes > LARGEST || ENDS.get() {
        return;
    }
    if IS_ENDING.swap(true, Ordering::AcqRel) {
        wait_for_the_end();
        return;
    }
    let reserved = RESERVED.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if reserved.is_null() {
        IS_ENDING.store(false, Ordering::Release);
        return;
    }
    ENDS.set(true);
    // SAFETY: it was mapped with this length, nothing refers to it, and whoever took it out of the cell is the only one to have it.
    unsafe { nix::libc::munmap(reserved.cast(), RESERVE) };
    let error = no_memory(bytes);
    tell(format_args!("error: {error}"));
    leftovers::exit_from_anywhere(error.exit_code())
}

/// Keeps this thread from making further files and from taking what another one needs to end the process, unless that one waits
/// for it.
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

/// What the system has given for `bytes`; ends the process if that is nothing.
#[inline]
fn given(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        refused(bytes);
    }
    memory
}

/// Asks for huge pages for a long allocation. Small systems have none, and most give them only where they are asked for.
#[inline]
fn on_huge_pages(memory: *mut u8, bytes: usize) -> *mut u8 {
    if bytes >= LONG && !memory.is_null() {
        ask_for_huge_pages(memory, bytes);
    }
    memory
}

/// Advises all of a mapping of its own, with what the allocator has before and after the allocation: of one that is advised in part the
/// system makes two, which it does not move as a whole when the allocation grows, so that it is copied.
#[cold]
fn ask_for_huge_pages(memory: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let start = memory.addr() / PAGE * PAGE;
        let length = (memory.addr() + bytes).next_multiple_of(PAGE) - start;
        // SAFETY: the pages are mapped, for the allocation lies in each, and the advice does not change what is there. That the system may
        // say no is all right.
        unsafe { nix::libc::madvise(memory.with_addr(start).cast(), length, nix::libc::MADV_HUGEPAGE) };
    }
}

// SAFETY: all is passed on to the system's allocator as it comes.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        before_it_is_asked();
        // SAFETY: as the caller promises.
        on_huge_pages(given(unsafe { System.alloc(layout) }, layout.size()), layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        before_it_is_asked();
        // SAFETY: as the caller promises.
        on_huge_pages(given(unsafe { System.alloc_zeroed(layout) }, layout.size()), layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        before_it_is_asked();
        // SAFETY: as the caller promises.
        on_huge_pages(given(unsafe { System.realloc(memory, layout, size) }, size), size)
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// First and last address of the mapping that has an address.
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
        give_back_large_allocations();
        let layout = Layout::from_size_align(3 * LONG + 5, 8).unwrap();
        // SAFETY: the layout is not empty, and the memory is grown and given back with the layout that it has.
        unsafe {
            let memory = Heap.alloc(layout);
            let (start, end) = mapping_of(memory);
            assert!(start <= memory.addr() && memory.addr() + layout.size() <= end);
            let grown = Heap.realloc(memory, layout, 5 * LONG);
            let (start, end) = mapping_of(grown);
            assert!(start <= grown.addr() && grown.addr() + 5 * LONG <= end);
            Heap.dealloc(grown, Layout::from_size_align(5 * LONG, 8).unwrap());
        }
    }
}
