#!/bin/bash
# Compiles the code of the map by itself, and measures the map of 65,536 segments with 2^24 records.
R=$(git rev-parse --show-toplevel)/crates/foxy-store/src/map
{
cat <<'X'
#![allow(dead_code, unused_imports)]
mod layout { pub const PAGE: usize = 4096; pub const SLOT: usize = 512; }
mod map {
X
sed 's/^#\[cfg(test)\]$/#[cfg(any())]/' $R/bits.rs | sed -e '/^\/\/!/d' | sed '1i pub mod bits {' ; echo '}'
sed 's/^#\[cfg(test)\]$/#[cfg(any())]/' $R/survey.rs | sed -e '/^\/\/!/d' -e 's/pub(crate) fn/pub fn/' | sed '1i pub mod survey {'; echo '}'
echo 'pub use survey::STRIPS;'
sed -n '/^\/\/\/ The current use of the place/,/^\/\/\/ The fate of a record/p' $R/mod.rs | sed '$d'
cat <<'X'
}
use map::*; use map::survey::*; use std::time::Instant;
fn main() {
    let records: u64 = std::env::args().nth(1).map_or(16 << 20, |n| n.parse().unwrap());
    let seg = 16u64 << 20; let n = 65_536u32;
    let places: Vec<_> = (0..n).map(|slot| SegmentPlace { slot, file: Some(0), at: u64::from(slot)*seg, bytes: seg, written: seg, state: SegmentUse::Sealed, sequence: Some(slot), ..Default::default() }).collect();
    let t = Instant::now();
    let file = SharedFile::new(FilePart { file: 0, start: 0, bytes: seg * u64::from(n) }, "x".into(), None);
    let mut survey = Survey::of_log(&["main"], file, seg, places);
    println!("begin {:?}, unit {}", t.elapsed(), survey.unit_bytes);
    let mut s = 88172645463325252u64;
    let mut longest = std::time::Duration::ZERO; let mut all = longest;
    let mut left = records;
    while left > 0 {
        let batch: Vec<_> = (0..16384.min(left)).map(|_| { s ^= s << 13; s ^= s >> 7; s ^= s << 17; ((s >> 8) as u32 % n, (s >> 40) % 4080 * 4096, ((s & 15) + 1) * 4096) }).collect();
        left -= batch.len() as u64;
        let t = Instant::now();
        for (slot, at, bytes) in batch { survey.add(slot, at, bytes, 1); }
        let d = t.elapsed(); longest = longest.max(d); all += d;
    }
    println!("add {records}: {all:?}, longest step of 16384: {longest:?}");
    let (mut longest, mut all) = (std::time::Duration::ZERO, std::time::Duration::ZERO);
    loop { let t = Instant::now(); let more = survey.finish_some(); let d = t.elapsed(); longest = longest.max(d); all += d; if !more { break } }
    println!("finish: {all:?}, longest step: {longest:?}");
    let live: u64 = survey.segments.iter().map(|s| s.live_bytes).sum();
    println!("live {} of {}; holes {}", live, seg * u64::from(n), survey.holes.iter().map(|h| h.holes).sum::<u64>());
}
X
} > bench.rs
rustc --edition 2024 -O -o bench bench.rs && ./bench 16777216
