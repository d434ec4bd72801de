//! Simulates one disk: its queue of requests, the position of its arm, and the duration of each
//! request.

use super::buffer::{DiskBuffer, Lookup};
use super::counts::{MechanicalCounts, RequestKind, ServiceRecord, bytes_of};
use super::geometry::{Geometry, Parts};
use super::profile::{DiskProfile, Scheduling};
use foxy_base::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Spindle {
    number: usize,
    geometry: Arc<Geometry>,
    overhead: Duration,
    /// The angle of the disk at time zero: the time in nanoseconds since the first sector of the
    /// first track passed the head.
    phase: u64,
    /// The number of the sector after the last sector that the disk served.
    head: u64,
    track: u64,
    free_at: Instant,
    queue: DriveQueue,
    current: Option<(RequestId, ServiceRecord)>,
    pub(super) buffer: DiskBuffer,
    bus_rate: u64,
    counts: MechanicalCounts,
}

impl Spindle {
    /// Creates an idle disk whose arm is at the first cylinder. `angle` is the start angle in
    /// nanoseconds, modulo the time of one rotation.
    pub(super) fn new(
        number: usize,
        profile: &DiskProfile,
        geometry: Arc<Geometry>,
        angle: u64,
    ) -> Self {
        Self {
            number,
            overhead: profile.controller_overhead,
            phase: angle % geometry.turn(),
            geometry,
            head: 0,
            track: 0,
            free_at: Instant::ZERO,
            queue: DriveQueue::new(profile.scheduling),
            current: None,
            buffer: DiskBuffer::new(profile),
            bus_rate: profile.bus_rate,
            counts: MechanicalCounts::default(),
        }
    }

    pub(super) const fn counts(&self) -> MechanicalCounts {
        self.counts
    }

    /// Queues a disk request. An idle disk starts the request at once.
    pub(super) fn push(&mut self, request: DiskRequest) {
        self.queue.push(request);
        if self.current.is_none() {
            self.start();
        }
    }

    /// Returns the time at which the disk finishes the request that it serves now.
    pub(super) fn next_finish(&self) -> Option<Instant> {
        self.current.as_ref().map(|(_, record)| record.finish)
    }

    /// Finishes the current disk request. Then the caller queues all requests that follow from it,
    /// and calls [`Spindle::resume`] to start the next request.
    pub(super) fn finish(&mut self) -> Option<(RequestId, ServiceRecord)> {
        let (id, record) = self.current.take()?;
        self.free_at = record.finish;
        Some((id, record))
    }

    /// Starts the next request from the queue if the disk is idle.
    pub(super) fn resume(&mut self) {
        if self.current.is_none() {
            self.start();
        }
    }

    fn start(&mut self) {
        let Some(request) = self.queue.pop(self.head) else { return };
        let start = self.free_at.max(request.arrival + self.overhead);
        let track = self.track;
        let (parts, buffered) = match self.serve_from_buffer(&request, start) {
            Some(parts) => (parts, true),
            None => (self.serve_from_disk(&request, start), false),
        };
        self.head = request.address + request.sectors;
        let record = ServiceRecord {
            spindle: self.number,
            kind: request.kind,
            address: request.address,
            size: bytes_of(request.sectors),
            buffered,
            seek: Duration::from_nanos(parts.seek),
            rotation: Duration::from_nanos(parts.rotation),
            transfer: Duration::from_nanos(parts.transfer),
            arrival: request.arrival,
            start,
            finish: start + Duration::from_nanos(parts.total()),
        };
        let geometry = &self.geometry;
        let target = geometry.cylinder_of(geometry.track_of(request.address));
        self.counts.note(&record, !buffered && geometry.cylinder_of(track) != target);
        self.current = Some((request.id, record));
    }

    /// Returns the times of a read that the disk's buffer or read-ahead answers. Returns `None` if
    /// the head has to move.
    fn serve_from_buffer(&mut self, request: &DiskRequest, start: Instant) -> Option<Parts> {
        if !request.kind.reads() {
            return None;
        }
        let (address, sectors) = (request.address, request.sectors);
        let bus = bytes_of(sectors) * 1_000_000_000 / self.bus_rate;
        match self.buffer.look_up(address, sectors) {
            Lookup::Held => Some(Parts { transfer: bus, ..Parts::default() }),
            Lookup::Coming(ahead) => {
                let end = address + sectors;
                let track = self.geometry.track_of(ahead.next.saturating_sub(1));
                let read_on = ahead.since.0 + self.phase;
                let parts = self.geometry.service(track, read_on, ahead.next, end - ahead.next);
                let met = ahead.since + Duration::from_nanos(parts.total());
                self.buffer.came(end, met);
                self.track = self.geometry.track_of(end - 1);
                let left = u64::try_from(met.since(start).as_nanos()).unwrap_or(u64::MAX);
                Some(Parts { transfer: bus.max(left), ..Parts::default() })
            }
            Lookup::Missing => None,
        }
    }

    /// Returns the times of a request for which the head has to move: seek, rotational delay and
    /// transfer.
    fn serve_from_disk(&mut self, request: &DiskRequest, start: Instant) -> Parts {
        let (address, sectors) = (request.address, request.sectors);
        if let Some(ahead) = self.buffer.ahead() {
            let read = self.geometry.sectors_in(start.since(ahead.since));
            let at = self.buffer.leave(read).unwrap_or(ahead.next);
            self.track = self.geometry.track_of(at.saturating_sub(1));
        }
        let parts = self.geometry.service(self.track, start.0 + self.phase, address, sectors);
        self.track = self.geometry.track_of(address + sectors - 1);
        if request.kind.reads() {
            let finish = start + Duration::from_nanos(parts.total());
            self.buffer.read(address, sectors, finish);
        } else {
            self.buffer.wrote(address, sectors);
        }
        parts
    }
}

/// Identifies a disk request. The model gives each number only once.
pub(super) type RequestId = u64;

#[derive(Clone, Copy, Debug)]
pub(super) struct DiskRequest {
    pub(super) id: RequestId,
    pub(super) kind: RequestKind,
    /// Number of the first sector of the request.
    pub(super) address: u64,
    pub(super) sectors: u64,
    pub(super) arrival: Instant,
}

#[derive(Debug)]
pub(super) enum DriveQueue {
    Fifo(VecDeque<DiskRequest>),
    CLook(BTreeMap<(u64, RequestId), DiskRequest>),
}

impl DriveQueue {
    pub(super) const fn new(scheduling: Scheduling) -> Self {
        match scheduling {
            Scheduling::Fifo => Self::Fifo(VecDeque::new()),
            Scheduling::CLook => Self::CLook(BTreeMap::new()),
        }
    }

    pub(super) fn push(&mut self, request: DiskRequest) {
        match self {
            Self::Fifo(queue) => queue.push_back(request),
            Self::CLook(queue) => drop(queue.insert((request.address, request.id), request)),
        }
    }

    /// Removes and returns the request that the disk serves next. `head` is the sector after the
    /// previous request. A [`Self::CLook`] queue returns the request with the lowest address from
    /// `head` on, or if there is none, the request with the lowest address.
    pub(super) fn pop(&mut self, head: u64) -> Option<DiskRequest> {
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

#[cfg(test)]
mod tests {
    use super::super::counts::RequestKind;
    use super::super::profile::Scheduling;
    use super::*;
    use foxy_base::Random;

    fn spindle(scheduling: Scheduling, seed: u64) -> Spindle {
        let profile = DiskProfile { scheduling, ..DiskProfile::st15150w() };
        Spindle::new(0, &profile, Arc::new(Geometry::new(&profile)), seed)
    }

    fn request(id: RequestId, address: u64, sectors: u64) -> DiskRequest {
        DiskRequest { id, kind: RequestKind::Read, address, sectors, arrival: Instant::ZERO }
    }

    /// Serves all queued requests. Returns their ids in the order of completion, and the time at
    /// which the last request finished.
    fn run(spindle: &mut Spindle) -> (Vec<RequestId>, Instant) {
        let (mut order, mut end) = (Vec::new(), Instant::ZERO);
        while let Some((id, record)) = spindle.finish() {
            assert_eq!(
                record.finish,
                record.start + record.seek + record.rotation + record.transfer
            );
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
        for (id, address) in
            [(0, 5_000_000), (1, 10), (2, 7_000_000), (3, 6_000_000), (4, 4_000_000)]
        {
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
    fn service_times_follow_from_the_seed() {
        assert_eq!(random_queue(Scheduling::CLook, 5), random_queue(Scheduling::CLook, 5));
        assert_ne!(random_queue(Scheduling::CLook, 5), random_queue(Scheduling::CLook, 6));
    }

    #[test]
    fn sectors_read_ahead_cost_no_turn() {
        let follow = |gap: u64, pause: u64, segments: u32| {
            let profile = DiskProfile { buffer_segments: segments, ..DiskProfile::st15150w() };
            let mut spindle = Spindle::new(0, &profile, Arc::new(Geometry::new(&profile)), 3);
            spindle.push(request(1, 5_000_000, 16));
            let (_, first) = spindle.finish().expect("served");
            spindle.resume();
            let arrival = first.finish + Duration::from_micros(pause);
            spindle.push(DiskRequest { arrival, ..request(2, 5_000_016 + gap, 16) });
            let (_, second) = spindle.finish().expect("served");
            (second.buffered, second.finish.since(arrival))
        };
        let (within, without) = (follow(0, 0, 8), follow(0, 0, 0));
        assert!(within.0 && within.1 < Duration::from_millis(3), "{within:?}");
        assert!(!without.0 && without.1 > Duration::from_millis(8), "{without:?}");
        let (buffered, took) = follow(16, 20_000, 8);
        assert!(buffered && took < Duration::from_micros(500), "{took:?} from memory");
        assert!(!follow(300, 0, 8).0, "so far it does not read ahead");
    }

    #[test]
    fn overwritten_sectors_are_read_from_the_disk() {
        let mut spindle = spindle(Scheduling::Fifo, 3);
        let write = DiskRequest { kind: RequestKind::Write, ..request(3, 1008, 1) };
        let reads = [request(1, 1000, 16), request(2, 1000, 16)];
        let after = [request(4, 1009, 7), request(5, 1008, 8)];
        for request in reads.into_iter().chain([write]).chain(after) {
            spindle.push(request);
        }
        let mut buffered = Vec::new();
        while let Some((_, record)) = spindle.finish() {
            buffered.push(record.buffered);
            spindle.resume();
        }
        assert_eq!(buffered, [false, true, false, true, false]);
    }

    #[test]
    fn queued_consecutive_requests_stream() {
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
