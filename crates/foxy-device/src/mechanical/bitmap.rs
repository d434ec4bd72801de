//! A bitmap of the free fragments (allocation units) or inodes in a cylinder group, which is one
//! area of a simulated disk. A search for free bits starts where the last search ended.

#[derive(Debug)]
pub(super) struct Bitmap {
    /// Each set bit stands for a free fragment or inode. The bits beyond the end of the group are
    /// clear.
    words: Vec<u64>,
    free: u32,
    rotor: u32,
    /// Upper bound for the length of a free run (adjacent free bits). A longer request fails
    /// without a search.
    longest: u32,
}

impl Bitmap {
    pub(super) fn new(length: u32) -> Self {
        let words = (0..length.div_ceil(64))
            .map(|word| match length - word * 64 {
                64.. => u64::MAX,
                left => (1 << left) - 1,
            })
            .collect();
        Self { words, free: length, rotor: 0, longest: length }
    }

    pub(super) const fn free(&self) -> u32 {
        self.free
    }

    /// Finds `count` adjacent free bits, marks them as taken, and returns the first position. The
    /// search begins after the run that was taken last. If it finds nothing, a second search begins
    /// at the start of the bitmap.
    pub(super) fn take_run(&mut self, count: u32) -> Option<u32> {
        if self.longest < count {
            return None;
        }
        let Some(start) = self.find(self.rotor, count).or_else(|| self.find(0, count)) else {
            self.longest = count - 1;
            return None;
        };
        self.set(start, count);
        self.rotor = start + count;
        Some(start)
    }

    /// Takes `count` bits, beginning with bit `start`, if all of them are free. Returns whether it
    /// took the bits.
    pub(super) fn take_at(&mut self, start: u32, count: u32) -> bool {
        let fits = self.next(start, u64::MAX).unwrap_or_else(|| self.length()) >= start + count;
        if fits {
            self.set(start, count);
            self.rotor = start + count;
        }
        fits
    }

    pub(super) fn give(&mut self, start: u32, count: u32) {
        for bit in start..start + count {
            let word = &mut self.words[bit as usize / 64];
            debug_assert_eq!(*word >> (bit % 64) & 1, 0, "only what is taken is freed");
            *word |= 1 << (bit % 64);
        }
        self.free += count;
        let end = self.next(start, u64::MAX).unwrap_or_else(|| self.length());
        self.longest = self.longest.max(end - self.taken_before(start));
    }

    /// Returns the start and length of the next group of adjacent free bits at or after `from`.
    pub(super) fn run_from(&self, from: u32) -> Option<(u32, u32)> {
        let start = self.next(from, 0)?;
        let end = self.next(start, u64::MAX).unwrap_or_else(|| self.length());
        Some((start, end - start))
    }

    fn length(&self) -> u32 {
        u32::try_from(self.words.len() * 64).expect("a group's bits are counted in 32 bits")
    }

    fn find(&self, from: u32, count: u32) -> Option<u32> {
        let mut at = from;
        loop {
            let (start, length) = self.run_from(at)?;
            if length >= count {
                return Some(start);
            }
            at = start + length;
        }
    }

    /// XORs each word of the bitmap with `flip`. Returns the position of the first set bit of the
    /// result at or after `from`. A `flip` of all ones thus finds the first clear bit of the
    /// bitmap.
    fn next(&self, from: u32, flip: u64) -> Option<u32> {
        let mut index = from as usize / 64;
        let mut word = (*self.words.get(index)? ^ flip) & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = *self.words.get(index)? ^ flip;
        }
        u32::try_from(index * 64).ok().map(|base| base + word.trailing_zeros())
    }

    /// Returns the position after the last taken (clear) bit before `bit`, or 0 if no bit before is
    /// taken.
    fn taken_before(&self, bit: u32) -> u32 {
        let mut index = bit as usize / 64;
        let mut taken = !self.words[index] & !(u64::MAX << (bit % 64));
        while taken == 0 {
            let Some(before) = index.checked_sub(1) else { return 0 };
            index = before;
            taken = !self.words[index];
        }
        u32::try_from(index * 64).map_or(0, |base| base + 64 - taken.leading_zeros())
    }

    fn set(&mut self, start: u32, count: u32) {
        for bit in start..start + count {
            self.words[bit as usize / 64] &= !(1 << (bit % 64));
        }
        self.free -= count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    #[test]
    fn runs_follow_each_other_and_wrap_around() {
        let mut bitmap = Bitmap::new(100);
        assert_eq!([40, 40, 40].map(|count| bitmap.take_run(count)), [Some(0), Some(40), None]);
        bitmap.give(10, 30);
        assert_eq!(bitmap.take_run(20), Some(80));
        assert_eq!(bitmap.take_run(20), Some(10));
        assert_eq!(bitmap.free(), 10);
        assert!(!bitmap.take_at(31, 10));
        assert!(bitmap.take_at(30, 10));
    }

    #[test]
    fn no_bit_is_taken_twice() {
        let mut random = Random::new(3);
        let mut bitmap = Bitmap::new(1000);
        let mut taken: Vec<(u32, u32)> = Vec::new();
        for _ in 0..5000 {
            let count = u32::try_from(random.below(30)).expect("small") + 1;
            if random.chance(0.5)
                && let Some(start) = bitmap.take_run(count)
            {
                assert!(start + count <= 1000);
                assert!(
                    taken.iter().all(|&(at, length)| at + length <= start || start + count <= at)
                );
                taken.push((start, count));
            } else if !taken.is_empty() {
                let index = usize::try_from(random.below(taken.len() as u64)).expect("small");
                let (start, count) = taken.swap_remove(index);
                bitmap.give(start, count);
            }
            let held: u32 = taken.iter().map(|&(_, count)| count).sum();
            assert_eq!(bitmap.free(), 1000 - held);
            assert!(bitmap.longest >= longest_run(&bitmap), "after {held} taken, seed 3");
        }
    }

    fn longest_run(bitmap: &Bitmap) -> u32 {
        let mut longest = 0;
        let mut at = 0;
        while let Some((start, length)) = bitmap.run_from(at) {
            longest = longest.max(length);
            at = start + length;
        }
        longest
    }
}
