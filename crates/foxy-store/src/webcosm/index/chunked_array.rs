//! Arrays of words that grow by small chunks of one size, taken from a pool they share. Arrays that
//! all grow at the same pace leave an ordinary allocator with holes that none of them fits into any
//! more; a chunk fits all.

/// Words of a chunk.
const CHUNK: usize = 16;

/// Chunks that the pool asks the allocator for at once: 64 KiB.
const SLAB: usize = 512;

type Chunk = [u64; CHUNK];

/// Where chunks come from and go to.
#[derive(Debug, Default)]
pub struct Pool {
    slabs: Vec<Box<[Chunk]>>,
    free: Vec<u32>,
    /// Bytes of memory that say where the words of the arrays are.
    lists: usize,
}

impl Pool {
    fn take(&mut self) -> u32 {
        if self.free.is_empty() {
            let first = self.slabs.len() * SLAB;
            self.slabs.push(vec![[0; CHUNK]; SLAB].into_boxed_slice());
            let last = u32::try_from(first + SLAB).expect("an index has fewer chunks");
            self.free.extend((last - SLAB as u32..last).rev());
        }
        self.free.pop().expect("just filled")
    }

    fn chunk(&self, name: u32) -> &Chunk {
        &self.slabs[name as usize / SLAB][name as usize % SLAB]
    }

    fn chunk_mut(&mut self, name: u32) -> &mut Chunk {
        &mut self.slabs[name as usize / SLAB][name as usize % SLAB]
    }

    /// Counts memory that says where words are: so many bytes of it, where it was so many.
    pub const fn count_list(&mut self, was: usize, is: usize) {
        self.lists = self.lists + is - was;
    }

    /// Bytes of memory it takes, with the lists of the arrays.
    #[must_use]
    pub const fn memory(&self) -> u64 {
        let chunks = self.slabs.len() * SLAB * size_of::<Chunk>();
        (chunks + self.free.capacity() * size_of::<u32>() + self.lists) as u64
    }
}

/// An array. Its chunks belong to the pool that every call is given.
#[derive(Clone, Debug, Default)]
pub struct Words {
    chunks: Vec<u32>,
    len: u32,
}

impl Words {
    /// Words in it.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    const fn list(&self) -> usize {
        self.chunks.capacity() * size_of::<u32>()
    }

    /// The word at a place.
    #[must_use]
    pub fn get(&self, pool: &Pool, at: usize) -> u64 {
        pool.chunk(self.chunks[at / CHUNK])[at % CHUNK]
    }

    /// Changes the word at a place.
    pub fn set(&self, pool: &mut Pool, at: usize, word: u64) {
        pool.chunk_mut(self.chunks[at / CHUNK])[at % CHUNK] = word;
    }

    /// The first place whose word is not below; the words are in order. It is sought from `guess`
    /// on in both directions, since every chunk that is looked at is likely not in the processor's
    /// cache.
    #[must_use]
    pub fn seek(&self, pool: &Pool, guess: usize, below: impl Fn(u64) -> bool) -> usize {
        let Some(last) = self.chunks.len().checked_sub(1) else { return 0 };
        let mut at = last.min(guess / CHUNK);
        while at > 0 && !below(pool.chunk(self.chunks[at])[0]) {
            at -= 1;
        }
        while at < last && below(pool.chunk(self.chunks[at])[CHUNK - 1]) {
            at += 1;
        }
        let start = at * CHUNK;
        let words = &pool.chunk(self.chunks[at])[..CHUNK.min(self.len() - start)];
        start + words.partition_point(|&word| below(word))
    }

    /// Puts a word in at a place; those from there on move up.
    pub fn insert(&mut self, pool: &mut Pool, at: usize, word: u64) {
        if self.len().is_multiple_of(CHUNK) {
            if self.chunks.len() == self.chunks.capacity() {
                let was = self.list();
                self.chunks.reserve_exact(1 + self.chunks.len() / 8);
                pool.count_list(was, self.list());
            }
            self.chunks.push(pool.take());
        }
        let (mut start, mut carried) = (at % CHUNK, word);
        for &name in &self.chunks[at / CHUNK..] {
            let chunk = pool.chunk_mut(name);
            let last = chunk[CHUNK - 1];
            chunk.copy_within(start..CHUNK - 1, start + 1);
            chunk[start] = std::mem::replace(&mut carried, last);
            start = 0;
        }
        self.len += 1;
    }

    /// Takes the word at a place out; those after it move down.
    pub fn remove(&mut self, pool: &mut Pool, at: usize) {
        let mut start = at % CHUNK;
        for place in at / CHUNK..self.chunks.len() {
            let next = self.chunks.get(place + 1).map(|&name| pool.chunk(name)[0]);
            let chunk = pool.chunk_mut(self.chunks[place]);
            chunk.copy_within(start + 1.., start);
            chunk[CHUNK - 1] = next.unwrap_or(0);
            start = 0;
        }
        self.truncate(pool, self.len() - 1);
    }

    /// Keeps those words that `keep` says, in their order.
    pub fn retain(&mut self, pool: &mut Pool, keep: impl Fn(u64) -> bool) {
        let mut kept = 0;
        for at in 0..self.len() {
            let word = self.get(pool, at);
            if keep(word) {
                self.set(pool, kept, word);
                kept += 1;
            }
        }
        self.truncate(pool, kept);
    }

    /// Takes all words out.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.truncate(pool, 0);
        pool.count_list(self.list(), 0);
        self.chunks = Vec::new();
    }

    fn truncate(&mut self, pool: &mut Pool, len: usize) {
        self.len = u32::try_from(len).expect("it had more");
        pool.free.extend(self.chunks.drain(len.div_ceil(CHUNK)..));
        if self.chunks.capacity() > 2 * self.chunks.len() + 8 {
            let was = self.list();
            self.chunks.shrink_to(self.chunks.len() + self.chunks.len() / 8);
            pool.count_list(was, self.list());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    #[test]
    fn arrays_that_share_a_pool_agree_with_plain_ones() {
        let mut random = Random::new(5);
        let (mut pool, mut words, mut plain) =
            (Pool::default(), vec![Words::default(); 3], vec![Vec::new(); 3]);
        for step in 0..20_000 {
            let which = random.below(3) as usize;
            let (words, plain): (&mut Words, &mut Vec<u64>) =
                (&mut words[which], &mut plain[which]);
            let word = random.below(1 << 20);
            let at = words.seek(&pool, random.below(8_000) as usize, |other| other < word);
            assert_eq!(at, plain.partition_point(|&other| other < word));
            if random.below(5) < 3 || plain.is_empty() {
                words.insert(&mut pool, at, word);
                plain.insert(at, word);
            } else {
                let at = at.min(plain.len() - 1);
                words.remove(&mut pool, at);
                plain.remove(at);
            }
            if step % 5_000 == 4_999 {
                words.retain(&mut pool, |word| word % 3 != 0);
                plain.retain(|word| word % 3 != 0);
            }
            assert_eq!(words.len(), plain.len());
        }
        for (words, plain) in words.iter().zip(&plain) {
            assert!((0..plain.len()).all(|at| words.get(&pool, at) == plain[at]));
        }
    }

    #[test]
    fn chunks_that_are_given_back_are_used_again() {
        let (mut pool, mut words) = (Pool::default(), Words::default());
        for _ in 0..5 {
            (0..8_000).for_each(|word| words.insert(&mut pool, word as usize, word));
            words.retain(&mut pool, |_| false);
        }
        assert_eq!(pool.slabs.len(), 1);
    }
}
