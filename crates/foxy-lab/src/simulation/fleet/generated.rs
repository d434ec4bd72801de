//! Makes a trace from a workload of the load generator, such as `zipf`.

use foxy_base::Random;
use foxy_workload::trace::Names;
use foxy_workload::{Content, Get, Objects, RequestStream, Trace, Workload};

/// Number of clients. Each request has a random client.
const CLIENTS: u32 = 10_000;

/// Generates `gets` requests of a workload with objects. All have time 0. Begins with the warm-up
/// of the workload, if `is_warm`. Returns `None` for another workload.
pub fn trace(workload: &Workload, gets: usize, is_warm: bool, seed: u64) -> Option<Trace> {
    let objects = workload.objects()?;
    let warm_up = workload.warm_up().filter(|_| is_warm);
    let count = warm_up.as_ref().map_or(0, |warm_up| warm_up.objects);
    let first = warm_up.map(|warm_up| stream(workload.clone().with_objects(|_| warm_up), seed));
    let requests = stream(workload.clone(), seed).take(gets);
    let requests = first.into_iter().flat_map(|all| all.take(count as usize)).chain(requests);
    let mut clients = Random::new(seed ^ 0xc11e);
    let mut list = Vec::with_capacity(gets);
    let mut urls = 0;
    for url in requests {
        let client = clients.below(CLIENTS.into()) as u32;
        urls = urls.max(url + 1);
        list.push(Get { time: 0, client, url, size: objects.size });
    }
    Some(Trace {
        gets: list,
        sites: vec![0; urls as usize],
        names: Names::Numbered,
        clients: CLIENTS,
        site_count: 1,
        ..Trace::default()
    })
}

fn stream(workload: Workload, seed: u64) -> impl Iterator<Item = u32> {
    let mut requests = RequestStream::new(&workload, seed);
    std::iter::repeat_with(move || match requests.next_request().content {
        Content::Object(object, _) => u32::try_from(object.id).unwrap_or(u32::MAX - 1),
        Content::Document(_) => 0,
    })
}

/// Changes the number of objects of a workload.
pub fn with_objects(workload: Workload, objects: u64) -> Workload {
    workload.with_objects(|old| Objects { objects, ..old })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warm_up_asks_for_each_object_once() {
        let workload = with_objects(Workload::find("zipf").expect("a workload"), 50);
        let trace = trace(&workload, 100, true, 1).expect("objects");
        let urls: Vec<u32> = trace.gets.iter().map(|get| get.url).collect();
        assert_eq!(urls[..50], (0..50).collect::<Vec<_>>());
        assert_eq!((urls.len(), trace.urls()), (150, 50));
        assert_eq!(super::trace(&workload, 100, false, 1).expect("objects").gets.len(), 100);
    }

    #[test]
    fn other_workloads_give_no_trace() {
        let workload = Workload::find("polymix-4").expect("a workload");
        assert!(trace(&workload, 1, false, 1).is_none());
    }
}
