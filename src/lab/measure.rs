//! Measurement of the time and memory of a piece of work.

use std::time::Instant;

/// Runs a piece of work. Returns its wall-clock seconds, and its result.
pub(super) fn seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64(), result)
}

/// Runs a piece of work. Returns the processor seconds of this thread, and the result of the work.
///
/// On a shared machine this is the time that one core needs. If the system does not report
/// processor time, returns wall-clock seconds.
pub(super) fn core_seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let cpu_time = || {
        let message = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        message.split(' ').next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
    };
    let cpu_before = cpu_time();
    let (clock, result) = seconds(work);
    (cpu_before.zip(cpu_time()).map_or(clock, |(before, after)| after - before), result)
}

/// Returns the median of some values. The list must not be empty.
pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Returns the number of fingerprints per second that one core reads from memory and adds: the
/// physical limit of a scan.
pub(super) fn memory_scan() -> f64 {
    let values: Vec<u64> = (0..1 << 26).collect();
    let pass = || {
        let (seconds, sum) = core_seconds(|| values.iter().fold(0u64, |sum, value| sum.wrapping_add(*value)));
        std::hint::black_box(sum);
        values.len() as f64 / seconds
    };
    median((0..5).map(|_| pass()).collect())
}

/// Resets the peak memory of this process. Returns false if the system cannot do that.
pub(super) fn forget_peak_memory() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Returns the processor seconds of all threads of this process; 0 if the system does not report
/// them.
///
/// On a shared machine these are the seconds that a piece of work needs, whereas the clock also
/// includes the time of other programs.
pub(super) fn processor_seconds() -> f64 {
    user_and_kernel_seconds().iter().sum()
}

/// Returns the processor seconds of all threads of this process in user mode and in the kernel.
pub(super) fn user_and_kernel_seconds() -> [f64; 2] {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the process ends at the last bracket. The fields after it include the time in
    // user mode and in the kernel, in hundredths of a second.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let mut seconds = fields.skip(11).map(|ticks| ticks.parse().unwrap_or(0.0) / 100.0);
    [seconds.next().unwrap_or(0.0), seconds.next().unwrap_or(0.0)]
}
