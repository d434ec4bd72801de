//! Which answer to a request is the reference, and how far it holds.

use super::fields::{self, Whose};
use super::noise::Noise;
use super::unjudged::Unjudged;
use crate::leap::collector::VIA;
use crate::leap::exchange::Copied;
use crate::leap::multiplier::group::{RequestGroup, direct};
use crate::leap::{Answer, Asked, LeapRun, Manner, Path};
use crate::wire::REQUEST_ID;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug)]
pub struct Right<'a> {
    pub path: usize,
    pub answer: &'a Answer,
    pub whose: Whose,
    pub fields: bool,
    /// Whether every copy of the request must get the same answer, whenever it is sent.
    pub steady: bool,
}

/// Whether an answer differs from the origin's own, so that the origin must be asked again.
pub fn is_doubtful(asked: &Asked, copies: &[Copied], direct: usize, noise: &Noise) -> bool {
    let Ok(right) = &copies[direct].outcome else { return false };
    copies.iter().enumerate().any(|(path, copy)| match &copy.outcome {
        Err(_) => false,
        Ok(answer) if answer.fingerprint() != right.fingerprint() => true,
        Ok(answer) => {
            let ignored = |name: &str| noise.covers((path, direct), asked, name);
            fields::difference((&right.headers, Whose::Origin), &answer.headers, &ignored).is_some()
        }
    })
}

/// The origin's own answer, if it repeats it when asked again. Without an origin, the answer of
/// more than half of the answering addresses.
pub fn reference<'a>(
    run: &LeapRun,
    group: &'a RequestGroup,
    noise: &Noise,
) -> Result<Right<'a>, Unjudged> {
    let (path, answer, fields) = match direct(&run.paths) {
        Some(path) => {
            let answer = group.copies[path].outcome.as_ref().map_err(|_| Unjudged::NoReference)?;
            let repeats = |again: &Copied| {
                again
                    .outcome
                    .as_ref()
                    .is_ok_and(|again| again.fingerprint() == answer.fingerprint())
            };
            if !group.again.as_ref().is_none_or(repeats) {
                return Err(Unjudged::OriginVaries);
            }
            (path, answer, true)
        }
        None => majority(&run.paths, group, noise).ok_or(Unjudged::NoReference)?,
    };
    let whose = if run.paths[path].manner == Manner::Direct { Whose::Origin } else { Whose::Proxy };
    Ok(Right { path, answer, whose, fields, steady: is_steady(run, answer) })
}

/// Whether all copies have one answer. True behind a Collector, ours or one named in `Via`, and for
/// the verifying origin, whose answer depends on the request alone.
fn is_steady(run: &LeapRun, answer: &Answer) -> bool {
    let is_collector = |via: &[u8]| via.starts_with(VIA.as_bytes());
    run.wanted.is_some()
        || (run.numbers.is_some() && answer.headers.contains(REQUEST_ID))
        || answer.headers.tokens("via").any(is_collector)
}

fn majority<'a>(
    paths: &[Path],
    group: &'a RequestGroup,
    noise: &Noise,
) -> Option<(usize, &'a Answer, bool)> {
    let mut seen = BTreeSet::new();
    let whole = |path: usize| Some((path, group.copies[path].outcome.as_ref().ok()?));
    let answers: Vec<(usize, &Answer)> = (0..paths.len())
        .filter_map(whole)
        .filter(|(path, _)| seen.insert(paths[*path].address))
        .collect();
    let most = |count: usize, of: usize| count > 1 && count * 2 > of;
    let agree = |answer: &Answer| {
        answers.iter().filter(|(_, other)| other.fingerprint() == answer.fingerprint()).count()
    };
    let side: Vec<(usize, &Answer)> =
        answers.iter().copied().filter(|(_, answer)| most(agree(answer), answers.len())).collect();
    let first = *side.first()?;
    let alike = |one: usize, other: usize| noise.alike(side[one], side[other], &group.asked);
    let count = |one: usize| (0..side.len()).filter(|&other| alike(one, other)).count();
    let agreed = (0..side.len()).find(|&one| most(count(one), side.len()));
    let (path, answer) = agreed.map_or(first, |one| side[one]);
    Some((path, answer, agreed.is_some()))
}
