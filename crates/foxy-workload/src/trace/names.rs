//! Texts by number, end to end in one allocation, and the table that gives each new text the next
//! number. Not a general map: nothing is ever removed.

use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

/// The texts of a trace's URLs.
#[derive(Clone, Debug, Default)]
pub enum Names {
    /// Synthetic: a text follows from the URL's number and site.
    #[default]
    Numbered,
    /// As they stood in the log.
    Texts(Texts),
}

/// Texts, numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    joined: String,
    ends: Vec<usize>,
}

impl Texts {
    /// The text with this number.
    ///
    /// # Panics
    /// When there is none.
    pub fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.joined[start..self.ends[number]]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn push(&mut self, text: &str) {
        self.joined.push_str(text);
        self.ends.push(self.joined.len());
    }
}

/// Gives each different text a number: the next one when it is new.
#[derive(Clone, Debug, Default)]
pub(super) struct Interner {
    texts: Texts,
    numbers: HashTable<u32>,
    hasher: RandomState,
}

impl Interner {
    /// The number of a text that was seen.
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.numbers.find(hash, |&number| self.texts.get(number) == text).copied()
    }

    /// The text's number, and whether it is new. None when all 2^32 numbers are given away.
    pub(super) fn number(&mut self, text: &str) -> Option<(u32, bool)> {
        let hash = self.hasher.hash_one(text);
        if let Some(&number) = self.numbers.find(hash, |&number| self.texts.get(number) == text) {
            return Some((number, false));
        }
        let number = u32::try_from(self.texts.len()).ok()?;
        self.texts.push(text);
        self.numbers
            .insert_unique(hash, number, |&number| self.hasher.hash_one(self.texts.get(number)));
        Some((number, true))
    }

    /// How many different texts were seen.
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The texts alone.
    pub(super) fn into_texts(self) -> Texts {
        self.texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_the_number_it_was_first_given() {
        let mut interner = Interner::default();
        let numbers: Vec<_> =
            ["a", "", "bb", "a", ""].iter().map(|text| interner.number(text)).collect();
        assert_eq!(
            numbers,
            [Some((0, true)), Some((1, true)), Some((2, true)), Some((0, false)), Some((1, false))]
        );
        let texts = interner.into_texts();
        assert_eq!((texts.get(0), texts.get(1), texts.get(2)), ("a", "", "bb"));
    }
}
