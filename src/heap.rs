//! What the allocator does with memory that is given back to it, and what becomes of a process to which the system gives none.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Duration;

use crate::console::tell;
use crate::error::Error;
use crate::leftovers;

/// Bytes of an allocation that goes back to the system at once when it is freed.
const LARGE: i32 = 4 << 20;

/// From now on large allocations are mapped by themselves and go back to the system when they are freed. Left alone, glibc comes to
/// take them from its heap, of which nothing goes back as long as something small lies above it: a process then holds up to a
/// sixth more than it uses. Costs one to four parts in a hundred of the time. Other allocators are left as they are.
pub fn give_back_large_allocations() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets a number of the allocator, which may be set at any time.
    unsafe {
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, LARGE);
    }
}

/// The system's allocator. Once [`end_in_order`] was called, an allocation that the system refuses ends the process with
/// [`Error::NoMemory`], as files are removed that must not outlive it; Rust alone would end it by SIGABRT.
pub struct Heap;

/// Bytes that are kept to tell of the end with.
const RESERVE: usize = 1 << 20;

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
pub fn end_in_order() {
    // SAFETY: the layout has a size.
    RESERVED.store(unsafe { System.alloc(reserve()) }, Ordering::Release);
}

fn reserve() -> Layout {
    Layout::new::<[u8; RESERVE]>()
}

#[cold]
fn refused(bytes: usize) {
    if bytes > LARGEST || ENDS.get() {
        return;
    }
    if IS_ENDING.swap(true, Ordering::AcqRel) {
        // Another thread tells of it, unless it waits for this one.
        std::thread::sleep(Duration::from_secs(PATIENCE));
        return;
    }
    let reserved = RESERVED.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if reserved.is_null() {
        IS_ENDING.store(false, Ordering::Release);
        return;
    }
    ENDS.set(true);
    // SAFETY: it was allocated with this layout, and whoever took it out of the cell is the only one to have it.
    unsafe { System.dealloc(reserved, reserve()) };
    let error = Error::NoMemory { what: "this process".into(), needed_bytes: bytes as u64 };
    tell(format_args!("error: {error}"));
    leftovers::exit_from_anywhere(error.exit_code())
}

/// What the system has given for `bytes`; ends the process if that is nothing.
#[inline]
fn given(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        refused(bytes);
    }
    memory
}

// SAFETY: all is passed on to the system's allocator as it comes.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.realloc(memory, layout, size) }, size)
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}
