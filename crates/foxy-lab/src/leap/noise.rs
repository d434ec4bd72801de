//! Which fields change by themselves, so that another value of them means nothing.

use super::fields::{self, Learned};
use super::{Answer, Manner};
use std::collections::BTreeSet;

/// Fields that are learned to be noise, by path.
#[derive(Debug)]
pub struct Noise(pub Vec<BTreeSet<String>>);

impl Noise {
    /// Nothing is learned yet, of so many paths.
    pub fn new(paths: usize) -> Self {
        Self(vec![BTreeSet::new(); paths])
    }

    /// Learns from two answers on one path to the same request; only if they have the same body.
    pub fn learn(&mut self, path: usize, manner: Manner, first: &Answer, second: &Answer) {
        let learned = if manner == Manner::Direct { Learned::Origin } else { Learned::Proxy };
        if first.fingerprint() == second.fingerprint() {
            self.0[path].extend(fields::noise(&first.headers, &second.headers, learned));
        }
    }

    /// Whether a field means nothing between these two paths.
    pub fn covers(&self, one: usize, other: usize, name: &str) -> bool {
        self.0[one].contains(name) || self.0[other].contains(name)
    }

    /// Whether two answers' fields differ in nothing that matters.
    pub fn alike(&self, answers: &[(usize, &Answer)], one: usize, other: usize) -> bool {
        let ((one, first), (other, second)) = (answers[one], answers[other]);
        let ignored = |name: &str| self.covers(one, other, name);
        fields::difference(&first.headers, &second.headers, &ignored).is_none()
            && fields::difference(&second.headers, &first.headers, &ignored).is_none()
    }
}
