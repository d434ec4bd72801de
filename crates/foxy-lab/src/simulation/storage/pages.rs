//! What a stream of URL operations leaves on disk, as reads in an order that its clients might ask
//! for it: pages at random, the URLs of each together.

use super::operation::{Operation, OperationKind, Operations};
use foxy_base::Random;
use std::collections::HashMap;

/// Reads of every URL that is there when all operations are done, each once. URLs of one site that
/// were written one after the other are a page; the seed decides in what order the pages are asked
/// for.
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

    #[test]
    fn what_was_written_last_and_not_deleted_is_read_once_page_by_page() {
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
