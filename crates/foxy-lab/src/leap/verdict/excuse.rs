//! What is not held against a path although it is not like the reference, because the origin may
//! have done it. Pure.

use super::detail::Detail;
use super::reference::Right;
use super::unjudged::Unjudged;
use super::{Finding, Reference, Verdict, judge};
use crate::leap::multiplier::group::{RequestGroup, direct};
use crate::leap::{Answer, LeapRun, PathFailure};

/// The reason why a finding is not the path's fault, if there is one. `reference` is the answer it
/// was judged by; `ignored` tells which fields may differ.
pub fn excuse(
    (run, group, path): (&LeapRun, &RequestGroup, usize),
    finding: &Finding,
    right: Option<(&Right<'_>, &Reference<'_>)>,
    ignored: &dyn Fn(&str) -> bool,
) -> Option<Unjudged> {
    let outcome = &group.copies[path].outcome;
    let answer = match outcome {
        Ok(answer) => answer,
        Err(failure) => {
            return has_origin_failed(run, group, path, *failure).then_some(Unjudged::OriginFailed);
        }
    };
    let (right, reference) = right.filter(|_| finding.verdict != Verdict::Ok)?;
    if !right.steady && !group.asked.message.method.is_safe() {
        return Some(Unjudged::NotRepeated);
    }
    if let Some(Ok(again)) = group.again.as_ref().map(|again| &again.outcome) {
        let second = Reference { answer: again, ..*reference };
        if judge(outcome, Ok(&second), ignored).is_ok_and(|found| found.verdict == Verdict::Ok) {
            return Some(Unjudged::OriginVaries);
        }
    }
    let unknown = matches!(finding.detail, Detail::Body(..) | Detail::Status(..));
    (unknown && !right.steady && is_seen_elsewhere(run, group, path, answer))
        .then_some(Unjudged::SeenElsewhere)
}

fn has_origin_failed(
    run: &LeapRun,
    group: &RequestGroup,
    path: usize,
    failure: PathFailure,
) -> bool {
    let direct = direct(&run.paths).filter(|&direct| direct != path);
    let origin = direct.and_then(|direct| group.copies[direct].outcome.as_ref().err());
    origin.is_some_and(|&origin| failure.may_follow(origin))
}

/// Whether another program at another address gave the same non-empty answer: then both have it
/// from the origin. Paths set up alike do not count, as they err alike.
fn is_seen_elsewhere(run: &LeapRun, group: &RequestGroup, path: usize, answer: &Answer) -> bool {
    let is_another = |other: usize| {
        run.paths[other].address != run.paths[path].address
            && ![(path, other), (other, path)].iter().any(|pair| run.alike.contains(pair))
    };
    let has_it = |other: usize| {
        group.copies[other]
            .outcome
            .as_ref()
            .is_ok_and(|other| other.fingerprint() == answer.fingerprint())
    };
    answer.length > 0
        && answer.status < 500
        && (0..run.paths.len()).any(|other| is_another(other) && has_it(other))
}
