#![no_main]

use std::sync::Once;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // A hook that only prints: a panic of the Parquet library that is caught does not end the
    // process, but an uncaught one does.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(Box::new(|info| eprintln!("{info}"))));
    webtwin_fuzz::parquet::check(data)
});
