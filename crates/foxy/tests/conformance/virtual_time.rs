//! Runs the suite in virtual time against foxy's caching rules alone. The results must equal the
//! results over sockets.

use crate::checks::{Check, Checks, assert_documented, documented, documented_unplayable};
use crate::player;
use crate::suite::{self, Cut};
use crate::vectors::{self, Vector};
use foxy_base::clock;
use std::collections::BTreeMap;

#[test]
fn the_rules_alone_find_what_the_documentation_says() {
    let Some(cut) = suite::cut() else { return };
    let vectors = vectors::read(&cut);
    let started = clock::monotonic();
    let mut checks = play_all(&vectors);
    let elapsed = clock::monotonic().since(started);
    let unplayable: BTreeMap<String, String> = vectors.iter().filter_map(reason).collect();
    assert_eq!(
        unplayable,
        documented_unplayable(cut.name),
        "checks not played, as docs/conformance.md has them"
    );
    let milliseconds = elapsed.as_secs_f64() * 1000.0;
    suite::tell(&format!(
        "{} of {} checks of {} played in virtual time, in {milliseconds:.0} ms",
        checks.len(),
        vectors.len(),
        cut.name
    ));
    let documented = documented(cut.name);
    // A check that needs sockets gets the result of the run over sockets.
    for vector in vectors.iter().filter(|vector| vector.unplayable().is_some()) {
        let found =
            if documented.contains(&vector.id) { Err("documented".to_owned()) } else { Ok(()) };
        checks.insert(vector.id.clone(), check(vector, found));
    }
    assert_documented(&checks, &documented);
}

/// Runs all checks that the caching rules can run, and returns the results.
pub fn play(cut: &Cut) -> Checks {
    play_all(&vectors::read(cut))
}

fn play_all(vectors: &[Vector]) -> Checks {
    let playable = vectors.iter().filter(|vector| vector.unplayable().is_none());
    playable.map(|vector| (vector.id.clone(), check(vector, player::play(vector)))).collect()
}

fn check(vector: &Vector, found: Result<(), String>) -> Check {
    Check {
        kind: vector.kind.clone(),
        needs: vector.needs.clone(),
        passed: found.is_ok(),
        problem: found.err().unwrap_or_default(),
    }
}

fn reason(vector: &Vector) -> Option<(String, String)> {
    Some((vector.id.clone(), vector.unplayable()?.description().to_owned()))
}
