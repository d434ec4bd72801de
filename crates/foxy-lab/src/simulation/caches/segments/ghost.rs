//! What went unused not long ago, by URL number where the engine has fingerprints. First in, first
//! out, and bounded by entries; what is asked for again is forgotten at once.

use std::collections::{HashMap, VecDeque};

#[derive(Default)]
pub(super) struct Ghost {
    /// Each with the number it was given; one that was taken or came again stays until its turn.
    queue: VecDeque<(u32, u64)>,
    numbers: HashMap<u32, u64>,
    next: u64,
}

impl Ghost {
    /// Remembers a URL, and forgets the oldest beyond so many.
    pub(super) fn push(&mut self, url: u32, entries: usize) {
        self.numbers.insert(url, self.next);
        self.queue.push_back((url, self.next));
        self.next += 1;
        while self.queue.len() > entries {
            let Some((oldest, number)) = self.queue.pop_front() else { return };
            if self.numbers.get(&oldest) == Some(&number) {
                self.numbers.remove(&oldest);
            }
        }
    }

    /// Whether a URL is remembered; it is forgotten.
    pub(super) fn take(&mut self, url: u32) -> bool {
        self.numbers.remove(&url).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_and_what_was_taken_is_not_found_again() {
        let mut ghost = Ghost::default();
        for url in [1, 2, 3] {
            ghost.push(url, 2);
        }
        assert!(!ghost.take(1) && ghost.take(2) && !ghost.take(2));
        ghost.push(2, 2);
        ghost.push(4, 2);
        assert!(ghost.take(2) && ghost.take(4) && !ghost.take(3));
        ghost.push(5, 0);
        assert!(!ghost.take(5));
    }
}
