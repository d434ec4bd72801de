//! Differential tests: the same generated and damaged bytes go to our decoders and to hyper's. What
//! both accept they must read alike; what only one accepts must be of a known kind (`known.rs`). A
//! failure prints its case, seed and bytes.

mod generate;
mod known;
mod requests;
mod responses;

use foxy_base::Random;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Every case follows from this seed and its number.
const SEED: u64 = 0x000f_0c5a;

/// The outcome of one case: the known disagreement it showed, if any, or what is wrong.
type Verdict<Kind> = Result<Option<Kind>, String>;

/// Runs `cases` cases and checks that every known kind of disagreement was met, so that the list
/// stays true.
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

/// Whether a trailer that generated messages have is one we drop (RFC 9110 §6.5.1).
fn dropped_from_trailers(name: &str) -> bool {
    ["connection", "content-length", "content-type", "host", "te", "transfer-encoding"]
        .contains(&name)
}
