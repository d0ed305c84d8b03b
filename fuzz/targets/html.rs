#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| webtwin_fuzz::html::check(data));
