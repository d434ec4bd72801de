//! Differential tests: foxy's decoders and hyper read the same generated and damaged bytes. If both
//! accept a message, they must read it alike. If only one decoder accepts a message, `known.rs`
//! must list the difference. A failure prints the case number, the seed and the bytes.

mod generate;
mod known;
mod requests;
mod responses;

use foxy_base::Random;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The seed of the random numbers. Seed and case number together determine a case.
const SEED: u64 = 0x000f_0c5a;

/// The result of a case. `Ok` contains a known difference or `None`. `Err` describes the failure.
type Verdict<Kind> = Result<Option<Kind>, String>;

/// Runs `cases` cases: `generate` makes the bytes, and `judge` compares both decoders. Panics if a
/// known difference never occurs, so that the list has no obsolete entries.
fn run<Kind: Copy + Debug + Ord>(
    cases: u64,
    kinds: &[Kind],
    generate: impl Fn(&mut Random) -> Vec<u8>,
    judge: impl Fn(&tokio::runtime::Runtime, &[u8]) -> Verdict<Kind>,
) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime without IO");
    let mut seen: BTreeMap<Kind, u64> = BTreeMap::new();
    for case in 0..cases {
        let input = generate(&mut Random::new(SEED ^ (case << 32)));
        match judge(&runtime, &input) {
            Ok(None) => {}
            Ok(Some(kind)) => *seen.entry(kind).or_default() += 1,
            Err(wrong) => {
                panic!(
                    "case {case} of seed {SEED:#x}: {wrong}\nbytes: \"{}\"",
                    input.escape_ascii()
                )
            }
        }
    }
    let unseen: Vec<&Kind> = kinds.iter().filter(|kind| !seen.contains_key(kind)).collect();
    assert!(
        unseen.is_empty(),
        "known kinds of disagreement that no case showed: {unseen:?}; seen: {seen:?}"
    );
}

/// Whether the decoder drops `name` from trailers (RFC 9110 §6.5.1). Covers only the names that
/// `generate` uses.
fn dropped_from_trailers(name: &str) -> bool {
    ["connection", "content-length", "content-type", "host", "te", "transfer-encoding"]
        .contains(&name)
}
