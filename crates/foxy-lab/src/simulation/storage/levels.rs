//! The two cache levels of the paper's simulator (R9): URL-gets go to a memory cache, what it
//! misses to a disk cache, and what that does becomes URL operations.

use super::operation::{Operation, OperationKind, Operations};
use crate::simulation::caches::cache::{Cache, Counts, Lookup};
use foxy_schemes::{PolicyName, PolicySettings};
use foxy_workload::{Get, Trace};

/// The two levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of disk.
    pub disk: u64,
    /// What the disk replaces by; memory is LRU.
    pub policy: PolicyName,
    /// Objects above so many bytes are not stored.
    pub object_limit: u64,
}

/// What went by at each level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelCounts {
    /// Look-ups in memory.
    pub memory: Counts,
    /// Look-ups on disk: what memory missed.
    pub disk: Counts,
}

/// Turns the gets of a trace into URL operations.
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
                let deleted = evicted.iter();
                list.extend(
                    deleted.map(|&url| operation(OperationKind::Delete, url, stored[url as usize])),
                );
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

#[cfg(test)]
mod tests {
    use super::*;
    use OperationKind::{Delete, Read, Write};

    #[test]
    fn misses_write_what_memory_forgot_is_read_and_what_is_displaced_is_deleted() {
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
}
