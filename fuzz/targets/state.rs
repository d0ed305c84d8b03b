#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| webtwin_fuzz::state::check(data));
