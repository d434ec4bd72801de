//! What references answered before, within fixed bounds: by it stale answers and swapped bodies are
//! known.

use super::Version;
use std::collections::{HashMap, VecDeque};

const URLS: usize = 1 << 16;
const ANSWERS: usize = 4;

/// Earlier references; the oldest URL is forgotten first.
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

    /// Another URL whose reference had this body.
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
