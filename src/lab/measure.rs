//! Measures time and memory of a piece of work.

use std::time::Instant;

/// Runs a piece of work; returns its seconds by the clock, and its result.
pub(super) fn seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let done = work();
    (start.elapsed().as_secs_f64(), done)
}

/// Runs a piece of work; returns the processor seconds it took on this thread, and its result. On a shared machine this
/// is what one core needs. Seconds by the clock if the system does not tell.
pub(super) fn core_seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let used = || {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        told.split(' ').next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
    };
    let before = used();
    let (clock, done) = seconds(work);
    (before.zip(used()).map_or(clock, |(before, after)| after - before), done)
}

/// The median of some figures, which must not be empty.
pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Fingerprints per second that one core reads from memory and adds up: the physical limit of a scan.
pub(super) fn memory_scan() -> f64 {
    let values: Vec<u64> = (0..1 << 26).collect();
    let pass = || {
        let (seconds, sum) = core_seconds(|| values.iter().fold(0u64, |sum, value| sum.wrapping_add(*value)));
        std::hint::black_box(sum);
        values.len() as f64 / seconds
    };
    median((0..5).map(|_| pass()).collect())
}

/// Resets this process's peak memory; returns whether the system can do that.
pub(super) fn forget_peak_memory() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Seconds that all threads of this process have spent on a processor; 0 if the system does not tell.
///
/// On a shared machine this is what a piece of work needs; the clock shows what it took.
pub(super) fn processor_seconds() -> f64 {
    user_and_kernel_seconds().iter().sum()
}

/// The same in user mode and in the kernel.
pub(super) fn user_and_kernel_seconds() -> [f64; 2] {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields after the name, which ends with the last bracket: time in user mode and in the kernel, in hundredths.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let mut seconds = fields.skip(11).map(|ticks| ticks.parse().unwrap_or(0.0) / 100.0);
    [seconds.next().unwrap_or(0.0), seconds.next().unwrap_or(0.0)]
}
