//! Chooses the reference, the answer that counts as correct. Also keeps the references of earlier
//! requests for each URL. If a proxy's answer equals an earlier reference, the answer is stale or
//! belongs to another URL.

use super::fields::ReferenceSource;
use super::noise::Noise;
use super::{Unjudged, Version, fields};
use crate::leap::collector::VIA;
use crate::leap::exchange::Copied;
use crate::leap::multiplier::group::{RequestGroup, direct};
use crate::leap::{Answer, Asked, LeapRun, Manner, Message, Path};
use crate::wire::REQUEST_ID;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The answer that counts as correct, and how to compare other answers with it.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    pub asked: &'a Message,
    /// The number of the path (proxy or origin) that gave this answer.
    pub path: usize,
    pub answer: &'a Answer,
    pub source: ReferenceSource,
    /// Whether LEAP compares header fields too. If false, LEAP compares only status and body.
    pub fields: bool,
    /// Whether every copy of the request, early or late, receives the same answer from the origin.
    pub steady: bool,
    /// The references of earlier requests for the URL, newest last. A reference is the answer that
    /// counts as correct.
    pub earlier: &'a [Version],
}

/// Whether a proxy's answer differs from the origin's answer. If so, LEAP asks the origin a second
/// time.
pub fn is_doubtful(asked: &Asked, copies: &[Copied], direct: usize, noise: &Noise) -> bool {
    let Ok(right) = &copies[direct].outcome else { return false };
    copies.iter().enumerate().any(|(path, copy)| match &copy.outcome {
        Err(_) => false,
        Ok(answer) if answer.fingerprint() != right.fingerprint() => true,
        Ok(answer) => {
            let ignored = |name: &str| noise.covers(path, direct, asked, name);
            fields::difference(&right.headers, ReferenceSource::Origin, &answer.headers, &ignored)
                .is_some()
        }
    })
}

/// Returns the reference. With a direct path (copies that go to the origin without a proxy), it is
/// the origin's answer. If the origin's second answer differs from its first, there is no
/// reference. Without a direct path, the reference is the answer that more than half of the
/// proxies' addresses sent.
pub fn reference<'a>(
    run: &LeapRun,
    group: &'a RequestGroup,
    noise: &Noise,
    earlier: &'a [Version],
) -> Result<Reference<'a>, Unjudged> {
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
    let source = if run.paths[path].manner == Manner::Direct {
        ReferenceSource::Origin
    } else {
        ReferenceSource::Proxy
    };
    let (asked, steady) = (&*group.asked.message, is_steady(run, answer));
    Ok(Reference { asked, path, answer, source, fields, steady, earlier })
}

/// Whether every copy of a request receives the same answer. This holds behind a Collector (common
/// parent proxy): `foxy leap` started it, or a `Via` field names it. It also holds for foxy's own
/// origin, whose answer depends only on the request.
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

const URLS: usize = 1 << 16;
const ANSWERS: usize = 4;

/// The references (answers that count as correct) of earlier requests, by URL. If there are too
/// many URLs, the oldest URL is removed.
#[derive(Debug, Default)]
pub struct Past {
    by_url: HashMap<String, Vec<Version>>,
    url_of: HashMap<u128, String>,
    order: VecDeque<String>,
}

impl Past {
    pub fn earlier(&self, key: &str) -> &[Version] {
        self.by_url.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns another URL that had a reference answer with this body. If there is such a URL, the
    /// proxy confused two URLs.
    pub fn owner(&self, digest: u128, key: &str) -> Option<&str> {
        self.url_of.get(&digest).map(String::as_str).filter(|owner| *owner != key)
    }

    pub fn remember(&mut self, key: &str, found: Version) {
        if !self.by_url.contains_key(key) {
            if self.order.len() == URLS
                && let Some(oldest) = self.order.pop_front()
            {
                for forgotten in self.by_url.remove(&oldest).into_iter().flatten() {
                    self.url_of.remove(&forgotten.print.digest);
                }
            }
            self.order.push_back(key.to_owned());
        }
        let answers = self.by_url.entry(key.to_owned()).or_default();
        if answers.last() != Some(&found) {
            if answers.len() == ANSWERS {
                answers.remove(0);
            }
            answers.push(found);
            self.url_of.insert(found.print.digest, key.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leap::verdict::Fingerprint;

    #[test]
    fn the_latest_answers_of_the_latest_urls_are_remembered() {
        let mut past = Past::default();
        let print =
            |digest| Version { print: Fingerprint { status: 200, digest }, validators: None };
        for digest in 0..6 {
            past.remember("a", print(digest));
        }
        assert_eq!(past.earlier("a"), [2, 3, 4, 5].map(print));
        assert_eq!((past.owner(5, "b"), past.owner(5, "a")), (Some("a"), None));
        for number in 0..URLS as u128 {
            past.remember(&format!("u{number}"), print(100 + number));
        }
        assert_eq!((past.earlier("a"), past.owner(5, "b")), (&[][..], None));
        assert_eq!(past.earlier("u0"), [print(100)]);
    }
}
