#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| webtwin_fuzz::fingerprint_file::check(data));
