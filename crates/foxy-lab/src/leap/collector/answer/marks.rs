//! When which bytes of a body came, in bounded memory: what a replay is paced by (R116). Pure.

use std::time::Duration;

const MOST: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub end: u64,
    pub at: Duration,
}

/// The arrival times of one body. Beyond `MOST` marks, neighbours merge: some bytes are then
/// replayed later than they came (by at most 1/64 of the transfer), none earlier.
#[derive(Clone, Debug)]
pub struct Marks {
    marks: Vec<Mark>,
    /// Pieces that come within this time share a mark.
    grain: Duration,
    begun: Duration,
}

impl Default for Marks {
    fn default() -> Self {
        Self { marks: Vec::new(), grain: Duration::from_micros(200), begun: Duration::ZERO }
    }
}

impl Marks {
    /// Records that bytes up to `end` have come at `at`. Neither argument ever falls.
    pub fn add(&mut self, end: u64, at: Duration) {
        if let Some(last) = self.marks.last_mut()
            && at.saturating_sub(self.begun) <= self.grain
        {
            *last = Mark { end, at };
            return;
        }
        if self.marks.len() == MOST {
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.grain = self.grain.max(at / (MOST as u32 / 2));
        }
        self.begun = at;
        self.marks.push(Mark { end, at });
    }

    pub fn after(&self, position: u64) -> Option<Mark> {
        let next = self.marks.partition_point(|mark| mark.end <= position);
        self.marks.get(next).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn pieces_are_replayed_when_they_came() {
        let mut marks = Marks::default();
        marks.add(100, Duration::ZERO);
        marks.add(150, Duration::from_micros(100));
        marks.add(1000, ms(30));
        marks.add(1500, ms(90));
        let expected = [
            (0, Some(Mark { end: 150, at: Duration::from_micros(100) })),
            (149, Some(Mark { end: 150, at: Duration::from_micros(100) })),
            (150, Some(Mark { end: 1000, at: ms(30) })),
            (1200, Some(Mark { end: 1500, at: ms(90) })),
            (1500, None),
        ];
        for (position, mark) in expected {
            assert_eq!(marks.after(position), mark, "{position}");
        }
    }

    #[test]
    fn lesson_7_a_long_transfer_takes_constant_memory_and_no_byte_comes_early() {
        let mut marks = Marks::default();
        for piece in 1..=1_000_000 {
            marks.add(piece * 1448, ms(piece));
        }
        assert!(marks.marks.len() <= MOST && marks.marks.capacity() <= 2 * MOST);
        for piece in (1..1_000_000).step_by(997) {
            let mark = marks.after((piece - 1) * 1448).expect("it came");
            assert!(mark.at >= ms(piece) && mark.at <= ms(piece + 16_384), "{piece}: {mark:?}");
        }
        assert_eq!(
            marks.after(999_999 * 1448),
            Some(Mark { end: 1_000_000 * 1448, at: ms(1_000_000) })
        );
    }
}
