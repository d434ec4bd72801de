//! Shrinks a failing script: removes steps by delta debugging (Zeller and Hildebrandt 2002), then
//! reduces numbers. A smaller script is kept only if it still causes the same kind of
//! `Violation`, perhaps with another seed.

use crate::script::{Faults, Script, Step};

/// Returns the smallest failing script that the search finds. `failing` returns a script that
/// fails, perhaps with another seed, or `None`. For `script` itself, `failing` must return a
/// script.
pub fn shrink(script: &Script, mut failing: impl FnMut(&Script) -> Option<Script>) -> Script {
    let mut best = script.clone();
    loop {
        let before = best.clone();
        best = fewer_steps(best, &mut failing);
        best = smaller_steps(best, &mut failing);
        if best.steps == before.steps {
            return best;
        }
    }
}

fn fewer_steps(mut best: Script, failing: &mut impl FnMut(&Script) -> Option<Script>) -> Script {
    let mut chunk = best.steps.len().div_ceil(2).max(1);
    loop {
        let mut start = 0;
        let mut cut = false;
        while start < best.steps.len() {
            let mut candidate = best.clone();
            let end = (start + chunk).min(candidate.steps.len());
            candidate.steps.drain(start..end);
            if let Some(smaller) = failing(&candidate) {
                best = smaller;
                cut = true;
            } else {
                start += chunk;
            }
        }
        if chunk == 1 && !cut {
            return best;
        }
        chunk = (chunk / 2).max(1);
    }
}

fn smaller_steps(mut best: Script, failing: &mut impl FnMut(&Script) -> Option<Script>) -> Script {
    for index in 0..best.steps.len() {
        for step in simpler(best.steps[index]) {
            let mut candidate = best.clone();
            candidate.steps[index] = step;
            if let Some(smaller) = failing(&candidate) {
                best = smaller;
                break;
            }
        }
    }
    best
}

/// Returns simpler replacements of a step, the simplest first.
fn simpler(step: Step) -> Vec<Step> {
    match step {
        Step::Put(name) => {
            let sizes = [0, 1, 100, name.size / 2];
            let smaller = sizes.into_iter().filter(|&size| size < name.size);
            smaller.map(|size| Step::Put(crate::content::RecordName { size, ..name })).collect()
        }
        Step::Run(count) => [1, count / 2, count.saturating_sub(1)]
            .into_iter()
            .filter(|&c| c < count)
            .map(Step::Run)
            .collect(),
        Step::Advance(time) => {
            [1, time / 2].into_iter().filter(|&t| t < time).map(Step::Advance).collect()
        }
        Step::Faults(faults) if faults.flips > 0 && faults.errors > 0 => {
            vec![
                Step::Faults(Faults { flips: 0, ..faults }),
                Step::Faults(Faults { errors: 0, ..faults }),
            ]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::RecordName;
    use crate::generate;

    #[test]
    fn only_what_the_failure_needs_is_left() {
        let needs = |script: &Script| {
            let put = script
                .steps
                .iter()
                .position(|step| matches!(step, Step::Put(name) if name.size >= 40));
            let crash = script.steps.iter().rposition(|step| matches!(step, Step::Crash(_)));
            put.zip(crash).is_some_and(|(put, crash)| put < crash)
        };
        let whole = (0..100)
            .map(|seed| generate::script("x", 1 << 18, seed))
            .find(needs)
            .expect("a failing script");
        let small = shrink(&whole, |script| needs(script).then(|| script.clone()));
        assert_eq!(small.steps.len(), 2, "{small}");
        assert!(matches!(small.steps[0], Step::Put(RecordName { size: 40..=100, .. })), "{small}");
    }
}
