//! Fingerprints for `../hamming.py`, and the crate mih-rs (multi-index hashing) on them, k = 3, on two threads.
//!
//! ```text
//! mih make FILE COUNT SEED [NEAR_TO]     raw fingerprints, one in a hundred within 0 to 5 flips of one of NEAR_TO, or of an
//!                                        earlier one
//! mih join F Q                           pairs of F and Q by distance
//! mih self F                             pairs of F by distance, each once
//! ```

use std::collections::BTreeMap;

fn splitmix64(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn read(path: &str) -> Vec<u64> {
    let bytes = std::fs::read(path).expect("the file is there");
    bytes.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn make(path: &str, count: u64, seed: u64, near_to: Option<Vec<u64>>) {
    let mut values: Vec<u64> = Vec::new();
    for at in 0..count {
        let random = splitmix64(splitmix64(seed).wrapping_add(at));
        let known = near_to.as_ref().unwrap_or(&values);
        let value = if at % 100 == 99 && !known.is_empty() {
            let flips = (0..at / 100 % 6).map(|flip| 1 << (splitmix64(random ^ flip) & 63));
            flips.fold(known[random as usize % known.len()], |value, bit: u64| value ^ bit)
        } else {
            random
        };
        values.push(value);
    }
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(path, bytes).expect("the folder can be written");
}

/// Pairs as (place in F, place in Q, distance), sorted; with itself each once.
fn pairs(f: &[u64], q: &[u64], with_itself: bool) -> Vec<(u32, u32, u32)> {
    let index = mih_rs::Index::new(f.to_vec()).expect("F is not empty");
    let share = q.len().div_ceil(2);
    let of_share = |(number, some): (usize, &[u64])| {
        let (mut searcher, mut found) = (index.range_searcher(), Vec::new());
        for (at, query) in (number * share..).zip(some) {
            for &near in searcher.run(*query, 3) {
                if !with_itself || near < at as u32 {
                    found.push((near, at as u32, (f[near as usize] ^ query).count_ones()));
                }
            }
        }
        found
    };
    let mut found = std::thread::scope(|scope| {
        let threads: Vec<_> = q.chunks(share).enumerate().map(|some| scope.spawn(move || of_share(some))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    found.sort_unstable();
    found
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let found = match words[..] {
        ["make", path, count, seed, ref near_to @ ..] => {
            let near_to = near_to.first().map(|path| read(path));
            return make(path, count.parse().unwrap(), seed.parse().unwrap(), near_to);
        }
        ["join", f, q] => pairs(&read(f), &read(q), false),
        ["self", f] => pairs(&read(f), &read(f), true),
        _ => panic!("make, join or self"),
    };
    let mut by_distance: BTreeMap<u32, u64> = BTreeMap::new();
    found.iter().for_each(|pair| *by_distance.entry(pair.2).or_default() += 1);
    let told: Vec<String> = by_distance.iter().map(|(distance, pairs)| format!("\"{distance}\": {pairs}")).collect();
    println!("{{{}}}", told.join(", "));
}
