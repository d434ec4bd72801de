//! Arrays of 64-bit words, built from chunks of equal size that come from a shared pool. Ordinary
//! arrays would fragment the memory, because many of them grow at the same time.

/// Number of 64-bit words in a chunk. A chunk fills two cache lines of 64 bytes.
const CHUNK: usize = 16;

/// Number of chunks that the pool allocates at once. Together they have 64 KiB.
const SLAB: usize = 512;

type Chunk = [u64; CHUNK];

/// The chunks of memory for all arrays of one index.
#[derive(Debug, Default)]
pub struct Pool {
    slabs: Vec<Box<[Chunk]>>,
    free: Vec<u32>,
    /// Memory in bytes of the lists of chunks in all arrays of the pool.
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

    /// Notes that an array's list of chunks changed its size from `was` to `is` bytes of memory.
    pub const fn count_list(&mut self, was: usize, is: usize) {
        self.lists = self.lists + is - was;
    }

    /// Returns the memory in bytes of the pool's chunks and of all lists of chunks.
    pub const fn memory(&self) -> u64 {
        let chunks = self.slabs.len() * SLAB * size_of::<Chunk>();
        (chunks + self.free.capacity() * size_of::<u32>() + self.lists) as u64
    }
}

/// An array of 64-bit words. The chunks of the array belong to a pool, and the caller must pass the
/// same pool to all methods.
#[derive(Clone, Debug, Default)]
pub struct ChunkedArray {
    chunks: Vec<u32>,
    len: u32,
}

impl ChunkedArray {
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    const fn list(&self) -> usize {
        self.chunks.capacity() * size_of::<u32>()
    }

    pub fn get(&self, pool: &Pool, at: usize) -> u64 {
        pool.chunk(self.chunks[at / CHUNK])[at % CHUNK]
    }

    pub fn set(&self, pool: &mut Pool, at: usize, word: u64) {
        pool.chunk_mut(self.chunks[at / CHUNK])[at % CHUNK] = word;
    }

    /// Returns the first index of a sorted array for whose word `below` returns false. The search
    /// walks from chunk to chunk, starting at the index `guess`. A binary search would visit more
    /// chunks, and each visit costs a cache miss of the processor.
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

    /// Removes all words for which `keep` returns false. Keeps the order of the other words.
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
            (Pool::default(), vec![ChunkedArray::default(); 3], vec![Vec::new(); 3]);
        for step in 0..20_000 {
            let which = random.below(3) as usize;
            let (words, plain): (&mut ChunkedArray, &mut Vec<u64>) =
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
        let (mut pool, mut words) = (Pool::default(), ChunkedArray::default());
        for _ in 0..5 {
            (0..8_000).for_each(|word| words.insert(&mut pool, word as usize, word));
            words.retain(&mut pool, |_| false);
        }
        assert_eq!(pool.slabs.len(), 1);
    }
}
