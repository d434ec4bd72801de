//! One disk arm: its queue, its position and how long each request takes. What the requests are for, it does not know.

use super::counts::{MechanicalCounts, RequestKind, ServiceRecord, bytes_of};
use super::geometry::{Geometry, nanoseconds};
use super::profile::{DiskProfile, Scheduling};
use foxy_base::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Names one request of a device; never used twice.
pub(super) type RequestId = u64;

/// A request as the disk sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskRequest {
    pub(super) id: RequestId,
    pub(super) kind: RequestKind,
    /// Its first sector.
    pub(super) address: u64,
    pub(super) sectors: u64,
    pub(super) arrival: Instant,
}

#[derive(Debug)]
enum Queue {
    Fifo(VecDeque<DiskRequest>),
    CLook(BTreeMap<(u64, RequestId), DiskRequest>),
}

impl Queue {
    fn push(&mut self, request: DiskRequest) {
        match self {
            Self::Fifo(queue) => queue.push_back(request),
            Self::CLook(queue) => drop(queue.insert((request.address, request.id), request)),
        }
    }

    /// The next one to serve, with the head before the sector `head`.
    fn pop(&mut self, head: u64) -> Option<DiskRequest> {
        match self {
            Self::Fifo(queue) => queue.pop_front(),
            Self::CLook(queue) => {
                let next = queue.range((head, 0)..).next().or_else(|| queue.first_key_value());
                let key = *next?.0;
                queue.remove(&key)
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Spindle {
    number: usize,
    geometry: Arc<Geometry>,
    overhead: Duration,
    /// Angle at time zero, as the nanoseconds since the first track's first sector came by.
    phase: u64,
    /// The sector after the last one served.
    head: u64,
    track: u64,
    free_at: Instant,
    queue: Queue,
    current: Option<(RequestId, ServiceRecord)>,
    counts: MechanicalCounts,
}

impl Spindle {
    /// A disk at rest at its first cylinder; `angle` is any number, of which what is over whole turns counts.
    pub(super) fn new(number: usize, profile: &DiskProfile, geometry: Arc<Geometry>, angle: u64) -> Self {
        let queue = match profile.scheduling {
            Scheduling::Fifo => Queue::Fifo(VecDeque::new()),
            Scheduling::CLook => Queue::CLook(BTreeMap::new()),
        };
        Self {
            number,
            overhead: profile.controller_overhead,
            phase: angle % geometry.turn(),
            geometry,
            head: 0,
            track: 0,
            free_at: Instant::ZERO,
            queue,
            current: None,
            counts: MechanicalCounts::default(),
        }
    }

    pub(super) const fn counts(&self) -> MechanicalCounts {
        self.counts
    }

    /// Takes a request; an idle disk begins with it.
    pub(super) fn push(&mut self, request: DiskRequest) {
        self.queue.push(request);
        if self.current.is_none() {
            self.start();
        }
    }

    /// When the request being served will be done.
    pub(super) fn next_finish(&self) -> Option<Instant> {
        self.current.as_ref().map(|(_, record)| record.finish)
    }

    /// Ends the request being served. The next one starts with [`Spindle::resume`], so that what the end of this one
    /// brings to the queue can be chosen.
    pub(super) fn finish(&mut self) -> Option<(RequestId, ServiceRecord)> {
        let (id, record) = self.current.take()?;
        self.free_at = record.finish;
        Some((id, record))
    }

    /// Starts the next request, where one waits and none is being served.
    pub(super) fn resume(&mut self) {
        if self.current.is_none() {
            self.start();
        }
    }

    fn start(&mut self) {
        let Some(request) = self.queue.pop(self.head) else { return };
        let start = self.free_at.max(request.arrival + self.overhead);
        let geometry = &self.geometry;
        let parts = geometry.service(self.track, start.0 + self.phase, request.address, request.sectors);
        let from = geometry.cylinder_of(self.track);
        let moved_arm = from != geometry.cylinder_of(geometry.track_of(request.address));
        self.track = geometry.track_of(request.address + request.sectors - 1);
        self.head = request.address + request.sectors;
        let record = ServiceRecord {
            spindle: self.number,
            kind: request.kind,
            address: request.address,
            size: bytes_of(request.sectors),
            seek: Duration::from_nanos(parts.seek),
            rotation: Duration::from_nanos(parts.rotation),
            transfer: Duration::from_nanos(parts.transfer),
            arrival: request.arrival,
            start,
            finish: start + Duration::from_nanos(parts.total()),
        };
        debug_assert_eq!(nanoseconds(record.finish.since(start)), parts.total());
        self.counts.note(&record, moved_arm);
        self.current = Some((request.id, record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    fn spindle(scheduling: Scheduling, seed: u64) -> Spindle {
        let profile = DiskProfile { scheduling, ..DiskProfile::st15150w() };
        Spindle::new(0, &profile, Arc::new(Geometry::new(&profile)), seed)
    }

    fn request(id: RequestId, address: u64, sectors: u64) -> DiskRequest {
        DiskRequest { id, kind: RequestKind::Read, address, sectors, arrival: Instant::ZERO }
    }

    /// Serves everything, and gives the order and the end.
    fn run(spindle: &mut Spindle) -> (Vec<RequestId>, Instant) {
        let (mut order, mut end) = (Vec::new(), Instant::ZERO);
        while let Some((id, record)) = spindle.finish() {
            assert_eq!(record.finish, record.start + record.seek + record.rotation + record.transfer);
            assert!(record.start >= end, "one at a time");
            order.push(id);
            end = record.finish;
            spindle.resume();
        }
        (order, end)
    }

    fn random_queue(scheduling: Scheduling, seed: u64) -> Instant {
        let mut random = Random::new(seed);
        let mut spindle = spindle(scheduling, seed);
        for id in 0..500 {
            spindle.push(request(id, random.below(DiskProfile::st15150w().sectors() - 16), 16));
        }
        run(&mut spindle).1
    }

    #[test]
    fn the_elevator_goes_up_and_starts_again_at_the_lowest() {
        let mut spindle = spindle(Scheduling::CLook, 1);
        for (id, address) in [(0, 5_000_000), (1, 10), (2, 7_000_000), (3, 6_000_000), (4, 4_000_000)] {
            spindle.push(request(id, address, 2));
        }
        assert_eq!(run(&mut spindle).0, [0, 3, 2, 1, 4]);
    }

    #[test]
    fn a_fifo_keeps_the_order_and_takes_longer_than_the_elevator() {
        for seed in 0..3 {
            let (fifo, elevator) =
                (random_queue(Scheduling::Fifo, seed), random_queue(Scheduling::CLook, seed));
            assert!(fifo.0 > elevator.0 * 3 / 2, "seed {seed}: {fifo:?} against {elevator:?}");
        }
    }

    #[test]
    fn service_follows_from_the_seed() {
        assert_eq!(random_queue(Scheduling::CLook, 5), random_queue(Scheduling::CLook, 5));
        assert_ne!(random_queue(Scheduling::CLook, 5), random_queue(Scheduling::CLook, 6));
    }

    #[test]
    fn what_waits_and_follows_on_the_disk_streams() {
        let mut spindle = spindle(Scheduling::CLook, 9);
        for id in 0..100 {
            spindle.push(request(id, 1_000_000 + id * 16, 16));
        }
        run(&mut spindle);
        let counts = spindle.counts();
        assert_eq!((counts.device_reads, counts.bytes_read), (100, 100 * 16 * 512));
        assert!(counts.rotation_time < Duration::from_millis(9), "one turn at most: {counts:?}");
    }
}
