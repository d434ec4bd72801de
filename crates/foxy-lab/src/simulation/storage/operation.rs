//! URL operations: the reads, writes and deletions of whole objects that a proxy's disk cache
//! causes on its disk. Also reads of the stored objects by a later client.

use crate::simulation::caches::cache::{Cache, Counts, Lookup};
use foxy_base::Random;
use foxy_schemes::{PolicyName, PolicySettings};
use foxy_workload::{Get, Trace};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    Read,
    Write,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub kind: OperationKind,
    pub url: u32,
    /// The number of the origin server to which the URL belongs.
    pub site: u32,
    pub size: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    pub list: Vec<Operation>,
    /// The number of URL-gets: client requests, including hits in memory.
    pub gets: u64,
    pub memory_hits: u64,
    /// The size of the disk cache in bytes.
    pub disk: u64,
}

impl Operations {
    pub fn count(&self, kind: OperationKind) -> u64 {
        self.list.iter().filter(|operation| operation.kind == kind).count() as u64
    }

    /// Returns the number of bytes that all operations together read and write.
    pub fn bytes(&self) -> u64 {
        let moved = self.list.iter().filter(|operation| operation.kind != OperationKind::Delete);
        moved.map(|operation| operation.size).sum()
    }
}

/// The sizes in bytes and the rules of the proxy's two cache levels, memory and disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    pub memory: u64,
    pub disk: u64,
    /// The replacement policy of the disk cache. The memory cache uses LRU.
    pub policy: PolicyName,
    /// The largest object in bytes that either cache stores.
    pub object_limit: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelCounts {
    pub memory: Counts,
    /// The look-ups in the disk cache: requests that missed in memory.
    pub disk: Counts,
}

/// Converts the requests of a trace into operations of the disk cache. Only misses in memory reach
/// the disk cache.
pub fn operations(trace: &Trace, levels: &Levels) -> (Operations, LevelCounts) {
    let urls = u32::try_from(trace.urls()).unwrap_or(u32::MAX);
    let settings = |capacity| PolicySettings { capacity, object_limit: levels.object_limit };
    let mut memory =
        Cache::new(PolicyName::Lru.make(&settings(levels.memory)), levels.memory, urls);
    let mut disk = Cache::new(levels.policy.make(&settings(levels.disk)), levels.disk, urls);
    let mut stored = vec![0; urls as usize];
    let mut list = Vec::new();
    let operation = |kind, url, size| Operation { kind, url, site: trace.site(url), size };
    for &Get { url, size, .. } in &trace.gets {
        if memory.get(url, size) == Lookup::Hit {
            continue;
        }
        match disk.get(url, size) {
            Lookup::Hit => list.push(operation(OperationKind::Read, url, stored[url as usize])),
            Lookup::Miss { is_stored, evicted } => {
                for &url in evicted {
                    list.push(operation(OperationKind::Delete, url, stored[url as usize]));
                }
                if is_stored {
                    stored[url as usize] = size;
                    list.push(operation(OperationKind::Write, url, size));
                }
            }
        }
    }
    let counts = LevelCounts { memory: memory.counts(), disk: disk.counts() };
    let operations = Operations {
        list,
        gets: counts.memory.gets,
        memory_hits: counts.memory.hits,
        disk: levels.disk,
    };
    (operations, counts)
}

/// Returns one read for each URL that is stored after all operations. URLs of one origin server
/// that were written one after the other form a page. `seed` shuffles the pages.
pub fn left_on_disk(operations: &Operations, seed: u64) -> Vec<Operation> {
    let mut written = HashMap::new();
    for (place, operation) in operations.list.iter().enumerate() {
        match operation.kind {
            OperationKind::Write => _ = written.insert(operation.url, place),
            OperationKind::Delete => _ = written.remove(&operation.url),
            OperationKind::Read => {}
        }
    }
    let mut places: Vec<usize> = written.into_values().collect();
    places.sort_unstable();
    let live: Vec<Operation> = places.iter().map(|&place| operations.list[place]).collect();
    let mut pages: Vec<&[Operation]> = live.chunk_by(|one, next| one.site == next.site).collect();
    shuffle(&mut pages, seed);
    let read = |&operation: &Operation| Operation { kind: OperationKind::Read, ..operation };
    pages.into_iter().flatten().map(read).collect()
}

fn shuffle<T>(list: &mut [T], seed: u64) {
    let mut random = Random::new(seed);
    for place in (1..list.len()).rev() {
        let other = random.below(place as u64 + 1) as usize;
        list.swap(place, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OperationKind::{Delete, Read, Write};

    #[test]
    fn misses_write_disk_hits_read_and_evictions_delete() {
        let gets = [0, 1, 0, 2, 0, 3, 1].map(|url| Get { time: 0, client: 0, url, size: 100 });
        let trace = Trace { gets: gets.to_vec(), sites: vec![10, 11, 12, 13], ..Trace::default() };
        let levels =
            Levels { memory: 100, disk: 300, policy: PolicyName::Lru, object_limit: u64::MAX };
        let (operations, counts) = operations(&trace, &levels);
        let list: Vec<_> =
            operations.list.iter().map(|operation| (operation.kind, operation.url)).collect();
        let expected = [
            (Write, 0),
            (Write, 1),
            (Read, 0),
            (Write, 2),
            (Read, 0),
            (Delete, 1),
            (Write, 3),
            (Delete, 2),
            (Write, 1),
        ];
        assert_eq!(list, expected);
        assert_eq!((operations.gets, counts.memory.hits, counts.disk.hits), (7, 0, 2));
        assert!(operations.list.iter().all(|operation| operation.site == operation.url + 10));
    }

    #[test]
    fn stored_urls_are_read_once_page_by_page() {
        let operation = |kind, url, site| Operation { kind, url, site, size: u64::from(url) * 10 };
        let write = |url, site| operation(OperationKind::Write, url, site);
        let list = vec![
            write(1, 1),
            write(2, 4),
            write(3, 2),
            write(4, 3),
            operation(OperationKind::Read, 1, 1),
            operation(OperationKind::Delete, 3, 2),
            write(1, 1),
            write(5, 1),
        ];
        let operations = Operations { list, ..Operations::default() };
        let reads = left_on_disk(&operations, 1);
        assert!(reads.iter().all(|read| read.kind == OperationKind::Read));
        let mut pages: Vec<Vec<u32>> = reads
            .chunk_by(|one, next| one.site == next.site)
            .map(|page| page.iter().map(|read| read.url).collect())
            .collect();
        pages.sort_unstable();
        assert_eq!(pages, [vec![1, 5], vec![2], vec![4]]);
    }
}
