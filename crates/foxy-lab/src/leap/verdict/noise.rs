//! Noise: the fields that a server changes in every answer, such as a unique request id. If such a
//! field has another value than in the reference answer, the proxy is not at fault.

use super::fields::{self, ReferenceSource};
use crate::leap::{Answer, Asked, Manner};
use std::collections::{BTreeSet, HashMap, VecDeque};
use xxhash_rust::xxh3::xxh3_128;

const REQUESTS: usize = 4096;

#[derive(Debug)]
pub struct Noise {
    /// For each path (proxy or origin): the fields that differed between the two answers to the
    /// probe request.
    by_path: Vec<BTreeSet<String>>,
    /// For each request: the fields that differed between two answers of the origin. The map's key
    /// is a digest of the request.
    by_request: HashMap<u128, BTreeSet<String>>,
    /// The keys of `by_request`, oldest first. A full map removes its oldest key.
    order: VecDeque<u128>,
}

impl Noise {
    pub fn new(paths: usize) -> Self {
        Self {
            by_path: vec![BTreeSet::new(); paths],
            by_request: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Learns from the two answers of a path (proxy or origin) to the probe request, which starts a
    /// run. Ignores the answers if their bodies differ.
    pub fn learn(&mut self, path: usize, manner: Manner, first: &Answer, second: &Answer) {
        let source =
            if manner == Manner::Direct { ReferenceSource::Origin } else { ReferenceSource::Proxy };
        self.by_path[path].extend(noise(first, second, source));
    }

    /// Learns from two answers of the origin to the same request. Ignores the answers if their
    /// bodies differ.
    pub fn learn_of(&mut self, asked: &Asked, first: &Answer, second: &Answer) {
        let found = noise(first, second, ReferenceSource::Origin);
        if found.is_empty() {
            return;
        }
        let request = digest(asked);
        if !self.by_request.contains_key(&request) {
            if self.order.len() == REQUESTS
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_request.remove(&oldest);
            }
            self.order.push_back(request);
        }
        self.by_request.entry(request).or_default().extend(found);
    }

    /// Whether the values of this field may differ between the answers of two paths (proxies or
    /// origin) to this request.
    pub fn covers(&self, one: usize, other: usize, asked: &Asked, name: &str) -> bool {
        let of_request =
            || self.by_request.get(&digest(asked)).is_some_and(|names| names.contains(name));
        self.by_path[one].contains(name)
            || self.by_path[other].contains(name)
            || (!self.by_request.is_empty() && of_request())
    }

    pub fn alike(
        &self,
        (one, first): (usize, &Answer),
        (other, second): (usize, &Answer),
        asked: &Asked,
    ) -> bool {
        let ignored = |name: &str| self.covers(one, other, asked, name);
        fields::difference(&first.headers, ReferenceSource::Proxy, &second.headers, &ignored)
            .is_none()
            && fields::difference(&second.headers, ReferenceSource::Proxy, &first.headers, &ignored)
                .is_none()
    }

    pub fn by_path(&self) -> Vec<Vec<String>> {
        self.by_path.iter().map(|names| names.iter().cloned().collect()).collect()
    }
}

fn digest(asked: &Asked) -> u128 {
    xxh3_128(asked.key().as_bytes())
}

fn noise(first: &Answer, second: &Answer, source: ReferenceSource) -> BTreeSet<String> {
    let alike = first.fingerprint() == second.fingerprint();
    fields::noise(&first.headers, &second.headers, source).filter(|_| alike).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leap::tests::answer;
    use std::time::Duration;

    #[test]
    fn an_origins_change_in_one_answer_is_noise_in_later_answers_to_that_request() {
        let asked = |path: String| Asked::get("o.test".into(), path, Duration::ZERO);
        let with = |tag: &str| answer(200, b"a", &[("ETag", tag)]);
        let mut noise = Noise::new(2);
        noise.learn_of(&asked("/a".into()), &with("1"), &with("2"));
        let covers = |noise: &Noise, path: &str| noise.covers(0, 1, &asked(path.into()), "etag");
        assert!(covers(&noise, "/a") && !covers(&noise, "/b"));
        for number in 0..REQUESTS {
            noise.learn_of(&asked(format!("/{number}")), &with("1"), &with("2"));
        }
        assert!(!covers(&noise, "/a") && covers(&noise, "/0"));
        assert_eq!((noise.by_request.len(), noise.order.len()), (REQUESTS, REQUESTS));
    }
}
